// A process held by the kernel's own reference to it: it means that process for ever, whoever is
// given its number later.
#pragma once

#include <cstdint>

namespace leasehold::controllers {

class pidfd {
 public:
  pidfd() = default;
  /// Empty, with errno set, when there is no such process or it cannot be held.
  static pidfd open(std::int64_t pid) noexcept;
  pidfd(pidfd&& from) noexcept;
  pidfd& operator=(pidfd&& from) noexcept;
  ~pidfd();

  [[nodiscard]] explicit operator bool() const noexcept { return number_ >= 0; }
  [[nodiscard]] int number() const noexcept { return number_; }
  /// Every thread of it has ended, whether or not its parent has taken note.
  [[nodiscard]] bool has_exited() const noexcept;
  /// To the process. False, with errno set, when it did not get the signal.
  [[nodiscard]] bool signal(int signal) const noexcept;
  /// To every process of the group that has this process's number. EINVAL before Linux 6.9.
  [[nodiscard]] bool signal_group(int signal) const noexcept;

 private:
  explicit pidfd(int number) noexcept : number_(number) {}
  int number_ = -1;
};

}  // namespace leasehold::controllers
