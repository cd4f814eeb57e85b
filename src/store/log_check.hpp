// The log behind the checkpoint, checked in the background after a start (architecture.md 4).
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "src/store/log_reader.hpp"

namespace leasehold::storage {

/// Reads every batch from the front of the log up to `upto` once, at its leisure, and says what is
/// broken; the log is never mended. Ends early when it is destroyed.
class log_check {
 public:
  /// `on_damage` gets one sentence, at most once, on the thread of the check.
  log_check(open_reader opens, protocol::row_number upto,
            std::function<void(std::string)> on_damage);
  ~log_check();
  log_check(const log_check&) = delete;
  log_check& operator=(const log_check&) = delete;

 private:
  void run();
  [[nodiscard]] std::string find_damage();
  /// Goes on behind `at`, which moves on; empty when nothing is wrong.
  [[nodiscard]] std::string check_from(log_reader& from, actors::log_head& at);

  open_reader opens_;
  protocol::row_number upto_;
  std::function<void(std::string)> on_damage_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace leasehold::storage
