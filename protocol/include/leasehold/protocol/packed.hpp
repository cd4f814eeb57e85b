// Numbers and text as compact bytes: what evidence rows, record images and job bodies are made of.
// Integers are varints of 7 bits a byte, lowest first; signed ones are zigzagged; text has its
// length in front.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace leasehold::protocol {

inline void put_byte(std::string& out, std::uint8_t value) {
  out.push_back(static_cast<char>(value));
}

inline void put_unsigned(std::string& out, std::uint64_t value) {
  std::array<char, 10> bytes;
  std::size_t size = 0;
  while (value >= 0x80U) {
    bytes[size++] = static_cast<char>(value | 0x80U);
    value >>= 7U;
  }
  bytes[size++] = static_cast<char>(value);
  out.append(bytes.data(), size);
}

inline void put_signed(std::string& out, std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  put_unsigned(out, (bits << 1U) ^ (value < 0 ? ~std::uint64_t{0} : std::uint64_t{0}));
}

inline void put_text(std::string& out, std::string_view text) {
  put_unsigned(out, text.size());
  out.append(text);
}

/// Reads what the functions above wrote. Never reads past the end: the first value that is not
/// whole makes it fail, and from then on every value is 0 or "".
class packed_reader {
 public:
  explicit packed_reader(std::string_view bytes) noexcept : rest_(bytes) {}

  [[nodiscard]] bool failed() const noexcept { return failed_; }
  /// True when all was read and nothing failed.
  [[nodiscard]] bool finished() const noexcept { return !failed_ && rest_.empty(); }
  [[nodiscard]] std::size_t left() const noexcept { return rest_.size(); }
  void fail() noexcept {
    failed_ = true;
    rest_ = {};
  }

  std::uint8_t get_byte() noexcept {
    const std::string_view bytes = get_bytes(1);
    return bytes.empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(bytes.front());
  }

  std::uint64_t get_unsigned() noexcept {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const std::uint8_t byte = get_byte();
      if (shift == 63 && byte > 1) break;
      value |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
      if (failed_) return 0;
      if ((byte & 0x80U) == 0) return value;
    }
    fail();
    return 0;
  }

  std::int64_t get_signed() noexcept {
    const std::uint64_t bits = get_unsigned();
    return static_cast<std::int64_t>((bits >> 1U) ^ (~(bits & 1U) + 1U));
  }

  /// Exactly `size` bytes; they live as long as the bytes that are read.
  std::string_view get_bytes(std::size_t size) noexcept {
    if (failed_ || size > rest_.size()) {
      fail();
      return {};
    }
    const std::string_view bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return bytes;
  }

  std::string_view get_text() noexcept {
    const std::uint64_t size = get_unsigned();
    if (size > rest_.size()) {
      fail();
      return {};
    }
    return get_bytes(static_cast<std::size_t>(size));
  }

  /// An enumerator's number; fails above `highest`.
  template <class Enum>
  Enum get_enum(Enum highest) noexcept {
    const std::uint64_t number = get_unsigned();
    if (number > static_cast<std::uint64_t>(highest)) {
      fail();
      return Enum{};
    }
    return static_cast<Enum>(number);
  }

 private:
  std::string_view rest_;
  bool failed_ = false;
};

}  // namespace leasehold::protocol
