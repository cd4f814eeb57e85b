#include "text.hpp"

#include <algorithm>

namespace leasehold::client {
namespace {

/// How many bytes the character at the front takes; 0: it is none.
std::size_t character_size(std::string_view text) {
  const auto byte = [&](std::size_t n) { return static_cast<unsigned char>(text[n]); };
  const auto first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < size) return 0;
  for (std::size_t n = 1; n < size; ++n) {
    if ((byte(n) & 0xC0) != 0x80) return 0;
  }
  // Over-long forms, surrogates and what lies beyond U+10FFFF show in the second byte.
  const auto second = byte(1);
  if (first == 0xE0 && second < 0xA0) return 0;
  if (first == 0xED && second > 0x9F) return 0;
  if (first == 0xF0 && second < 0x90) return 0;
  if (first == 0xF4 && second > 0x8F) return 0;
  return size;
}

}  // namespace

std::string clean_text(std::string_view text, std::size_t most) {
  std::string clean;
  clean.reserve(std::min(text.size(), most));
  while (!text.empty()) {
    const auto size = character_size(text);
    if (clean.size() + std::max<std::size_t>(size, 1) > most) break;
    if (size == 0) {
      clean += '?';
      text.remove_prefix(1);
    } else {
      clean.append(text.substr(0, size));
      text.remove_prefix(size);
    }
  }
  return clean;
}

}  // namespace leasehold::client
