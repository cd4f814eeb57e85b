// Hosts. libidn2 maps and checks what is not plain ASCII; the plain rest is what DNS takes, which
// is more than IDNA does: hyphens anywhere and underscores, as in _acme-challenge.example.com.
#include <idn2.h>

#include <algorithm>
#include <memory>
#include <new>

#include "src/keys/targets.hpp"

namespace leasehold::keys {
namespace {

constexpr std::size_t largest_label = 63;
constexpr std::size_t largest_name = 253;
constexpr std::string_view a_label_prefix = "xn--";

struct freed {
  void operator()(char* text) const noexcept { idn2_free(text); }
};
using idn_text = std::unique_ptr<char, freed>;

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

std::string to_lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

refusal refuse(int idn_code) {
  if (idn_code == IDN2_MALLOC) throw std::bad_alloc();
  return {std::string("The host is none by IDNA 2008: ") + idn2_strerror(idn_code) + "."};
}

/// Tables of UTS 46 before Unicode 15.1 make "ss" of the capital U+1E9E, and another host than that
/// of U+00DF, its small letter. Keys are the same with every table.
std::string lower_sharp_s(std::string label) {
  constexpr std::string_view capital = "\xe1\xba\x9e";
  for (auto at = label.find(capital); at != std::string::npos; at = label.find(capital, at)) {
    label.replace(at, capital.size(), "\xc3\x9f");
  }
  return label;
}

normalised look_up(const std::string& typed) {
  const std::string label = lower_sharp_s(typed);
  std::uint8_t* out = nullptr;
  const int code = idn2_lookup_u8(reinterpret_cast<const std::uint8_t*>(label.c_str()), &out,
                                  IDN2_NONTRANSITIONAL | IDN2_NFC_INPUT);
  const idn_text held(reinterpret_cast<char*>(out));
  if (code != IDN2_OK) return refuse(code);
  return std::string(held.get());
}

/// An A-label must be the one that its own Unicode form gives, and that a U-label; else it is a
/// second name of something, or of nothing.
std::optional<refusal> find_a_label_fault(const std::string& label) {
  char* out = nullptr;
  const int code = idn2_to_unicode_8z8z(label.c_str(), &out, 0);
  const idn_text held(out);
  if (code != IDN2_OK) return refuse(code);
  if (auto fault = find_code_point_fault(held.get())) return fault;
  auto again = look_up(held.get());
  if (auto* fault = std::get_if<refusal>(&again)) return std::move(*fault);
  if (std::get<std::string>(again) == label) return std::nullopt;
  return refusal{"The host has an A-label (xn--) that nothing is written as."};
}

normalised normalise_label(const std::string& typed) {
  std::string label = to_lower(typed);
  if (is_ascii(label) && !label.starts_with(a_label_prefix)) return label;
  return look_up(label);
}

/// The bytes of a dot at the start of `text`, in any of the four forms that UTS 46 takes for one:
/// U+002E, U+3002, U+FF0E, U+FF61.
std::size_t dot_length(std::string_view text) {
  for (const std::string_view dot : {".", "\xe3\x80\x82", "\xef\xbc\x8e", "\xef\xbd\xa1"}) {
    if (text.starts_with(dot)) return dot.size();
  }
  return 0;
}

std::optional<refusal> find_label_fault(std::string_view label) {
  if (label.empty()) return refusal{"The host has an empty label."};
  if (label.size() > largest_label) return refusal{"The host has a label of more than 63 bytes."};
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  };
  if (!std::ranges::all_of(label, is_allowed)) {
    return refusal{
        "The host has a character that no host has; a port, path, user or wildcard does not belong "
        "to it."};
  }
  if (!label.starts_with(a_label_prefix)) return std::nullopt;
  return find_a_label_fault(std::string(label));
}

std::optional<refusal> find_name_fault(std::string_view name) {
  if (name.size() > largest_name) return refusal{"The host has more than 253 bytes."};
  while (true) {
    const std::size_t end = name.find('.');
    if (auto fault = find_label_fault(name.substr(0, end))) return fault;
    if (end == std::string_view::npos) return std::nullopt;
    name.remove_prefix(end + 1);
  }
}

}  // namespace

normalised to_a_labels(std::string_view typed) {
  if (!is_utf8(typed)) return refusal{"The host is no UTF-8 text."};
  if (has_control_character(typed)) return refusal{"The host must hold no control character."};
  std::string name;
  std::string label;
  const auto end_label = [&]() -> std::optional<refusal> {
    auto made = normalise_label(label);
    if (auto* fault = std::get_if<refusal>(&made)) return std::move(*fault);
    name += std::get<std::string>(made);
    label.clear();
    return std::nullopt;
  };
  for (std::size_t at = 0; at < typed.size();) {
    const std::size_t dot = dot_length(typed.substr(at));
    if (dot == 0) {
      label += typed[at++];
      continue;
    }
    if (auto fault = end_label()) return std::move(*fault);
    name += '.';
    at += dot;
  }
  if (auto fault = end_label()) return std::move(*fault);
  if (name.ends_with('.')) name.pop_back();
  if (auto fault = find_name_fault(name)) return std::move(*fault);
  return name;
}

bool ends_in_a_number(std::string_view a_labels) {
  std::string_view last = a_labels.substr(a_labels.rfind('.') + 1);
  const bool is_hex = last.starts_with("0x");
  if (is_hex) last.remove_prefix(2);
  return std::ranges::all_of(
      last, [&](char c) { return (c >= '0' && c <= '9') || (is_hex && c >= 'a' && c <= 'f'); });
}

normalised normalise_host(std::string_view typed) {
  if (typed.find(':') != std::string_view::npos) {
    return refusal{
        "The host has a colon; a port does not belong to it, and an IPv6 address is of kind ip."};
  }
  auto name = to_a_labels(typed);
  const auto* text = std::get_if<std::string>(&name);
  if (text != nullptr && ends_in_a_number(*text)) {
    return refusal{
        "The host ends in a number, as no name does; lock an IPv4 address by kind ip, as four "
        "decimal octets."};
  }
  return name;
}

}  // namespace leasehold::keys
