// Names and opaque targets: text in one normal form.
#include <uninorm.h>
#include <unistr.h>

#include <cstdlib>
#include <memory>
#include <new>

#include "src/keys/targets.hpp"

namespace leasehold::keys {
namespace {

struct freed {
  void operator()(std::uint8_t* text) const noexcept { std::free(text); }
};

const std::uint8_t* bytes_of(std::string_view text) {
  return reinterpret_cast<const std::uint8_t*>(text.data());
}

std::string to_nfc(std::string_view text) {
  if (text.empty()) return {};
  std::size_t size = 0;
  const std::unique_ptr<std::uint8_t, freed> composed(
      u8_normalize(UNINORM_NFC, bytes_of(text), text.size(), nullptr, &size));
  if (!composed) throw std::bad_alloc();  // its only failure for text that is UTF-8
  return {reinterpret_cast<const char*>(composed.get()), size};
}

}  // namespace

bool is_utf8(std::string_view text) {
  return text.empty() || u8_check(bytes_of(text), text.size()) == nullptr;
}

bool has_control_character(std::string_view utf8) {
  for (std::size_t at = 0; at < utf8.size(); ++at) {
    const auto byte = static_cast<unsigned char>(utf8[at]);
    if (byte < 0x20 || byte == 0x7f) return true;
    if (byte != 0xc2 || at + 1 == utf8.size()) continue;
    const auto next = static_cast<unsigned char>(utf8[at + 1]);
    if (next >= 0x80 && next <= 0x9f) return true;
  }
  return false;
}

normalised normalise_text(std::string_view typed, std::string_view what, std::size_t least,
                          std::size_t most) {
  const std::string begun(what);
  if (!is_utf8(typed)) return refusal{begun + " is no UTF-8 text."};
  if (has_control_character(typed)) return refusal{begun + " must hold no control character."};
  std::string text = to_nfc(typed);
  if (text.size() < least || text.size() > most) {
    return refusal{begun + " must have " + std::to_string(least) + " to " + std::to_string(most) +
                   " bytes in NFC; this has " + std::to_string(text.size()) + "."};
  }
  return text;
}

normalised normalise_opaque(std::string_view typed) {
  return normalise_text(typed, "The opaque target", 1, 512);
}

}  // namespace leasehold::keys
