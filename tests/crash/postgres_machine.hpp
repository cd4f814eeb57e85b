// A machine with a PostgreSQL server, all of whose processes end at once.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>

#include "crash_machine.hpp"
#include "support/postgres_proxy.hpp"
#include "support/postgres_server.hpp"

namespace leasehold::tests {

/// The kernel outlives the crash: what the server wrote is there, synced or not; what it kept in
/// its own memory, as it keeps a commit that nobody waits for, is lost.
class postgres_machine final : public crash_machine {
 public:
  /// Each place is a database.
  std::unique_ptr<log_place> new_place() override;
  /// The n-th message to the server is the last that is looked at.
  void crash_at(std::int64_t n) override;
  void crash() override;
  [[nodiscard]] bool crashed() const override;
  bool wait_for_crash(std::chrono::milliseconds within) override;
  [[nodiscard]] std::int64_t unsynced() const override { return 0; }
  void restart(std::uint64_t seed) override;

 private:
  postgres_server server_{postgres_server::durable()};
  postgres_proxy proxy_{server_.socket()};
  int databases_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool crashed_ = false;
  bool by_kill_ = true;  ///< else by an immediate stop
};

}  // namespace leasehold::tests
