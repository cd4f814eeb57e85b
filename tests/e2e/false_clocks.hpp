// Clocks of a program that a test turns while it runs: the wall clock, the machine's own, and which
// boot it is. A preloaded shim shows them to the program (support/clock_shim.hpp).
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "support/clock_shim.hpp"
#include "support/temporary_directory.hpp"

namespace leasehold::e2e {

/// At first they are the machine's, whose own clocks never move: what the test does to them is
/// the only fault. One object may outlive several starts of the program.
class false_clocks {
 public:
  using ms = std::chrono::milliseconds;

  false_clocks();
  ~false_clocks();
  false_clocks(const false_clocks&) = delete;
  false_clocks& operator=(const false_clocks&) = delete;

  /// Variables with which a program sees these clocks.
  [[nodiscard]] std::vector<std::string> variables() const;

  /// The wall clock alone is stepped, or set to so long after 1970.
  void step_wall(ms by);
  void set_wall(ms to);
  /// The machine sleeps: CLOCK_BOOTTIME and the wall go on, CLOCK_MONOTONIC does not.
  void suspend(ms slept);
  /// Time goes by on every clock: only a program that stands still may not notice.
  void pass(ms time);
  /// The machine starts anew while no program runs: another boot id, and CLOCK_BOOTTIME at `up`.
  /// The wall clock goes on: how long it was off is what the test steps it by.
  void boot(ms up = std::chrono::seconds{5});

  // ---- what the program reads
  [[nodiscard]] std::int64_t wall_ms() const;
  [[nodiscard]] std::int64_t boottime_ms() const;

 private:
  void told();

  tests::temporary_directory kept_;
  std::string file_ = (kept_.path() / "clocks").string();
  tests::shim_state* shown_ = nullptr;
  int boots_ = 0;
};

}  // namespace leasehold::e2e
