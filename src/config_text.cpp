#include "src/config_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace leasehold::server::config_text {
namespace {

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

std::uint32_t code_point(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first;
  std::uint32_t code = first & (0xFFU >> (character.size() + 1));
  for (const char c : character.substr(1)) {
    code = (code << 6U) | (static_cast<unsigned char>(c) & 0x3FU);
  }
  return code;
}

struct code_range {
  std::uint32_t first;
  std::uint32_t last;
};

/// Characters that change what a terminal shows beyond their own place, or that show nothing at
/// all: controls, marks of direction and width, line ends, and the tags beyond the planes in use.
constexpr std::array treacherous{code_range{0x00, 0x1F},     code_range{0x7F, 0x9F},
                                 code_range{0x061C, 0x061C}, code_range{0x180E, 0x180E},
                                 code_range{0x200B, 0x200F}, code_range{0x2028, 0x202E},
                                 code_range{0x2060, 0x206F}, code_range{0xFEFF, 0xFEFF},
                                 code_range{0xFFF9, 0xFFFB}, code_range{0xE0000, 0xE007F}};

bool is_treacherous(std::uint32_t code) {
  return std::ranges::any_of(
      treacherous, [&](const code_range& r) { return code >= r.first && code <= r.last; });
}

}  // namespace

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = text.find(separator);
    if (end != 0) parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return parts;
}

std::size_t utf8_length(std::string_view text) noexcept {
  if (text.empty()) return 0;
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if (!is_continuation(text[i])) return 0;
  }
  const std::uint32_t code = code_point(text.substr(0, length));
  const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  const bool outside = (code >= 0xD800 && code <= 0xDFFF) || code > 0x10FFFF;
  return overlong || outside ? 0 : length;
}

bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string printable(std::string_view text, std::size_t limit) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    std::string piece;
    if (length == 0) {
      piece = fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    } else if (is_treacherous(code_point(text.substr(0, length)))) {
      piece = fmt::format("\\u{:04x}", code_point(text.substr(0, length)));
    } else {
      piece = text.substr(0, length);
    }
    if (out.size() + piece.size() > limit) return out + "...";
    out += piece;
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

std::string toml_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7F) {
      out += fmt::format("\\u{:04X}", byte);
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string toml_list(std::span<const std::string> items) {
  std::string out = "[";
  for (const std::string& item : items) {
    if (out.size() > 1) out += ", ";
    out += toml_string(item);
  }
  return out + ']';
}

}  // namespace leasehold::server::config_text
