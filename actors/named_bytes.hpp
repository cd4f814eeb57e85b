// A lease id with bytes behind it, where there are very many of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

namespace leasehold::actors {

/// A name and some bytes, which may be none, in one piece of memory: one pointer here, and a few
/// bytes beside the text itself. The name is at most 64 KiB long, the bytes 4 GiB. What was moved
/// from is only assigned to or destroyed.
class named_bytes {
 public:
  explicit named_bytes(std::string_view name, std::string_view bytes = {})
      : text_(std::make_unique_for_overwrite<char[]>(sizes_length + name.size() + bytes.size())) {
    const auto bytes_size = static_cast<std::uint32_t>(bytes.size());
    const auto name_size = static_cast<std::uint16_t>(name.size());
    std::memcpy(text_.get(), &bytes_size, sizeof bytes_size);
    std::memcpy(text_.get() + sizeof bytes_size, &name_size, sizeof name_size);
    std::ranges::copy(name, text_.get() + sizes_length);
    std::ranges::copy(bytes, text_.get() + sizes_length + name.size());
  }

  [[nodiscard]] std::string_view name() const noexcept {
    std::uint16_t size = 0;
    std::memcpy(&size, text_.get() + sizeof(std::uint32_t), sizeof size);
    return {text_.get() + sizes_length, size};
  }
  [[nodiscard]] std::string_view bytes() const noexcept {
    std::uint32_t size = 0;
    std::memcpy(&size, text_.get(), sizeof size);
    const auto name_is = name();
    return {name_is.data() + name_is.size(), size};
  }
  /// Puts these bytes in the place of those it has.
  void set_bytes(std::string_view bytes) { *this = named_bytes(name(), bytes); }

 private:
  static constexpr std::size_t sizes_length = sizeof(std::uint32_t) + sizeof(std::uint16_t);

  std::unique_ptr<char[]> text_;
};

}  // namespace leasehold::actors
