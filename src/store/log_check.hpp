// The log behind the checkpoint, checked in the background after a start (architecture.md 4).
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include "src/store/schema.hpp"

namespace leasehold::storage {

/// Reads every batch from the front of the log up to `upto` once, at its leisure, and says what is
/// broken; the log is never mended. Ends early when it is destroyed.
class log_check {
 public:
  /// `on_damage` gets one sentence, at most once, on the thread of the check.
  log_check(std::filesystem::path directory, protocol::row_number upto,
            std::function<void(std::string)> on_damage);
  ~log_check();
  log_check(const log_check&) = delete;
  log_check& operator=(const log_check&) = delete;

 private:
  void run();
  [[nodiscard]] std::string find_damage();

  std::filesystem::path directory_;
  protocol::row_number upto_;
  std::function<void(std::string)> on_damage_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace leasehold::storage
