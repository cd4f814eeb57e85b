// The machine that a store stands on, which loses power.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>

#include "support/log_place.hpp"

namespace leasehold::tests {

class crash_machine {
 public:
  virtual ~crash_machine() = default;

  /// A store that nobody has used; it is on this machine, and lasts as long as its place.
  virtual std::unique_ptr<log_place> new_place() = 0;

  /// Counts what a store asks of it from 1 again, and crashes at the n-th; 0: at none.
  virtual void crash_at(std::int64_t n) = 0;
  virtual void crash() = 0;
  [[nodiscard]] virtual bool crashed() const = 0;
  /// False when it does not crash in time.
  virtual bool wait_for_crash(std::chrono::milliseconds within) = 0;
  /// What the next crash may drop, as far as that is known.
  [[nodiscard]] virtual std::int64_t unsynced() const = 0;
  /// It comes back; the seed chooses what is left where there is a choice. Every store that was
  /// opened before must be closed.
  virtual void restart(std::uint64_t seed) = 0;

  /// Something else that uses a store under load, until the crash.
  virtual std::jthread beside(const log_place& /*where*/) { return {}; }
};

}  // namespace leasehold::tests
