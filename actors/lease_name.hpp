// A lease id where there are very many of them.
#pragma once

#include <algorithm>
#include <compare>
#include <memory>
#include <string_view>

namespace leasehold::actors {

/// The text of a lease id for the memory of one pointer beside the text itself; a std::string takes
/// four. Ordered like the id. The id holds no zero byte; what was moved from is only destroyed.
class lease_name {
 public:
  explicit lease_name(std::string_view id) : text_(std::make_unique<char[]>(id.size() + 1)) {
    std::ranges::copy(id, text_.get());
  }
  [[nodiscard]] std::string_view view() const noexcept { return text_.get(); }

  friend auto operator<=>(const lease_name& a, const lease_name& b) noexcept {
    return a.view() <=> b.view();
  }
  friend auto operator<=>(const lease_name& a, std::string_view b) noexcept {
    return a.view() <=> b;
  }

 private:
  std::unique_ptr<char[]> text_;
};

}  // namespace leasehold::actors
