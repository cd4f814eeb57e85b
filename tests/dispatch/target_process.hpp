// A target run by the test, and what it told of the signals that it got.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "leasehold/protocol/process_handle.hpp"
#include "support/temporary_directory.hpp"

namespace leasehold::tests {

/// Boot id of this start of this machine.
std::string this_boot();

class target_process {
 public:
  /// Runs until it is ready. `words` as target.cpp takes them.
  explicit target_process(const std::vector<std::string>& words = {});
  /// A target with the number of a process that has ended. No number in `error`: the machine does
  /// not let us choose one.
  static target_process with_number(std::int64_t pid, int& error);
  /// Kills its group and waits for it.
  ~target_process();
  target_process(target_process&& from) noexcept;
  target_process(const target_process&) = delete;
  target_process& operator=(const target_process&) = delete;

  [[nodiscard]] std::int64_t pid() const noexcept { return pid_; }
  /// Of its child in the same group; 0: none.
  [[nodiscard]] std::int64_t child() const;
  /// As a worker would register it.
  [[nodiscard]] protocol::process_handle handle() const;
  /// How often it and its child told of this: TERM, signal (any other), moved.
  [[nodiscard]] int told(const std::string& word) const;
  /// TERM and any other signal together, of all that write to its file.
  [[nodiscard]] int signals() const { return told("TERM") + told("signal"); }
  [[nodiscard]] bool lives() const;
  void signal(int number) const;
  /// Its wait status, once it has ended; -1 when it does not end.
  int wait();
  /// Waits until it has ended and leaves it for its parent to take note of.
  [[nodiscard]] bool ends_unreaped() const;

 private:
  struct unstarted {};
  explicit target_process(unstarted) {}
  [[nodiscard]] std::string content() const;

  std::unique_ptr<temporary_directory> kept_ = std::make_unique<temporary_directory>();
  std::int64_t pid_ = -1;
  bool is_reaped_ = false;
};

}  // namespace leasehold::tests
