// A descriptor that is kept for the time when there is no other: it lets a connection be taken that
// is to be turned away.
#pragma once

namespace leasehold::server {

/// Held and given up on one thread; `is_one_left` may be asked on any.
class spare_descriptor {
 public:
  spare_descriptor() { take_again(); }
  ~spare_descriptor() { give_up(); }
  spare_descriptor(const spare_descriptor&) = delete;
  spare_descriptor& operator=(const spare_descriptor&) = delete;

  [[nodiscard]] bool is_held() const noexcept { return held_ >= 0; }
  void give_up() noexcept;
  /// Tries to hold one again.
  void take_again() noexcept;
  /// Whether the process could open another file.
  [[nodiscard]] static bool is_one_left() noexcept;

 private:
  int held_ = -1;
};

}  // namespace leasehold::server
