// A machine whose file system loses what was not synced, with stores in directories.
#pragma once

#include "crash_machine.hpp"
#include "support/crash_vfs.hpp"

namespace leasehold::tests {

class sqlite_machine final : public crash_machine {
 public:
  /// `never_sync`: its stores do not wait for the disk.
  explicit sqlite_machine(bool never_sync = false);
  ~sqlite_machine() override;

  std::unique_ptr<log_place> new_place() override;
  void crash_at(std::int64_t n) override { disk_.crash_in_call(n); }
  void crash() override { disk_.crash(); }
  [[nodiscard]] bool crashed() const override { return disk_.crashed(); }
  bool wait_for_crash(std::chrono::milliseconds within) override {
    return disk_.wait_for_crash(within);
  }
  [[nodiscard]] std::int64_t unsynced() const override {
    return static_cast<std::int64_t>(disk_.unsynced());
  }
  void restart(std::uint64_t seed) override;
  /// The log is copied into the database while it is written, as it is at 32 MiB of it.
  std::jthread beside(const log_place& where) override;

 private:
  bool never_sync_;
  crash_vfs disk_;
};

}  // namespace leasehold::tests
