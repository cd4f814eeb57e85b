// What IDNA 2008 asks of the code points of a U-label beyond what libidn2 does: that asks only
// whether a CONTEXTO code point has a rule, not what the rule says, and lets pass what UTS 46
// leaves to the rules of STD 3.
#include <unictype.h>
#include <unistr.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <new>

#include "src/keys/targets.hpp"

namespace leasehold::keys {
namespace {

using code_points = std::u32string_view;

struct freed {
  void operator()(std::uint32_t* points) const noexcept { std::free(points); }
};

std::u32string read_points(std::string_view utf8) {
  std::size_t size = 0;
  const std::unique_ptr<std::uint32_t, freed> read(
      u8_to_u32(reinterpret_cast<const std::uint8_t*>(utf8.data()), utf8.size(), nullptr, &size));
  if (!read) throw std::bad_alloc();  // its only failure for text that is UTF-8
  return {read.get(), read.get() + size};
}

bool is_of_script(char32_t point, std::string_view name) {
  const uc_script_t* script = uc_script(point);
  return script != nullptr && script->name == name;
}

bool is_within(char32_t point, char32_t first, char32_t last) {
  return point >= first && point <= last;
}

char32_t before(code_points label, std::size_t at) { return at == 0 ? U'\0' : label[at - 1]; }
char32_t after(code_points label, std::size_t at) {
  return at + 1 == label.size() ? U'\0' : label[at + 1];
}

// ---- RFC 5892, appendix A.3 to A.9: whether the code point may stand where it does. A.9 refuses
// the labels that A.8 does.

bool is_between_two_l(code_points label, std::size_t at) {
  return before(label, at) == U'l' && after(label, at) == U'l';
}

bool is_before_greek(code_points label, std::size_t at) {
  return is_of_script(after(label, at), "Greek");
}

bool is_behind_hebrew(code_points label, std::size_t at) {
  return is_of_script(before(label, at), "Hebrew");
}

bool is_in_japanese(code_points label, std::size_t) {
  return std::ranges::any_of(label, [](char32_t point) {
    return is_of_script(point, "Hiragana") || is_of_script(point, "Katakana") ||
           is_of_script(point, "Han");
  });
}

bool has_no_extended_digit(code_points label, std::size_t) {
  return std::ranges::none_of(label, [](char32_t p) { return is_within(p, 0x6f0, 0x6f9); });
}

bool never(code_points, std::size_t) { return false; }

struct rule {
  char32_t first;
  char32_t last;
  bool (*is_met)(code_points label, std::size_t at);
  std::string_view sentence;
};

constexpr std::array<rule, 8> rules{{
    {0x5f, 0x5f, never, "an underscore stands in ASCII labels only"},
    {0xb7, 0xb7, is_between_two_l, "a middle dot stands between two l only"},
    {0x375, 0x375, is_before_greek, "a Greek numeral sign stands before a Greek letter only"},
    {0x5f3, 0x5f4, is_behind_hebrew, "a geresh or gershayim stands behind a Hebrew letter only"},
    {0x660, 0x669, has_no_extended_digit, "the label has Arabic digits of two kinds"},
    {0x2260, 0x2260, never, "a mathematical sign stands in no label"},
    {0x226e, 0x226f, never, "a mathematical sign stands in no label"},
    {0x30fb, 0x30fb, is_in_japanese, "a katakana middle dot stands beside kana or Han only"},
}};

}  // namespace

std::optional<refusal> find_code_point_fault(std::string_view u_label) {
  const std::u32string label = read_points(u_label);
  for (std::size_t at = 0; at < label.size(); ++at) {
    for (const rule& each : rules) {
      if (!is_within(label[at], each.first, each.last) || each.is_met(label, at)) continue;
      return refusal{"The host is none by IDNA 2008: " + std::string(each.sentence) + "."};
    }
  }
  return std::nullopt;
}

}  // namespace leasehold::keys
