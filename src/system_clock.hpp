// The coordinator's clock on the machine's: CLOCK_BOOTTIME, which counts suspend and knows no
// steps, tied to the time at which the store stopped (protocol.md 3).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "leasehold/actors/ports.hpp"
#include "leasehold/actors/store.hpp"
#include "leasehold/protocol/units.hpp"

namespace leasehold::server {

/// The machine's clocks; tests bring their own.
struct clock_sources {
  std::function<std::int64_t()> boottime_ms;  ///< CLOCK_BOOTTIME, rounded down
  std::function<std::int64_t()> wall_ms;      ///< CLOCK_REALTIME, ms since 1970
  std::string boot_id;                        ///< another one after each start of the machine
};
/// Of the machine that this runs on. The boot id is empty when the kernel gives none: then no start
/// counts as being of the same boot.
clock_sources machine_clocks();

/// What says how much time has passed since the stored anchor.
enum class clock_basis : std::uint8_t {
  boot,       ///< CLOCK_BOOTTIME of the same boot: exact
  wall,       ///< the wall clock, within bounds; also the first start of a store
  operator_,  ///< a flag
};
std::string_view word(clock_basis basis) noexcept;

/// What the operator accepts at a start at which the wall clock is out of bounds.
enum class accepted_clock : std::uint8_t {
  none,
  wall,    ///< as much time has passed as the wall clock says; none when it says less than none
  anchor,  ///< no time has passed since the stored anchor
};

/// The start needs an operator: one sentence that says why, and which flag accepts what.
struct clock_refused {
  std::string sentence;
};

class system_clock final : public actors::clock {
 public:
  /// Goes on from `stored`, the anchor of the newest batch; without one (a new store) begins at the
  /// wall clock. Same boot id: goes on exactly. Else elapsed = wall - stored wall, which must lie
  /// in [0, max_downtime], or `accepted` decides. [L7] Where the anchor may be another machine's,
  /// whose wall clock is not ours, down to -`behind` counts as no time at all.
  static std::variant<std::shared_ptr<system_clock>, clock_refused> start(
      clock_sources sources, const std::optional<actors::clock_anchor>& stored,
      protocol::duration max_downtime, accepted_clock accepted = accepted_clock::none,
      protocol::duration behind = {});

  /// Never less than any value returned before, to any thread.
  [[nodiscard]] protocol::instant now() const override;
  [[nodiscard]] actors::clock_anchor anchor() const override;
  [[nodiscard]] clock_basis basis() const noexcept { return basis_; }
  /// CLOCK_BOOTTIME at which `now` becomes `at`, in ms; negative when that was before the boot.
  [[nodiscard]] std::int64_t boottime_of(protocol::instant at) const noexcept;

 private:
  system_clock(clock_sources sources, std::int64_t origin_ms, clock_basis basis);

  clock_sources sources_;
  std::int64_t origin_ms_;  // coordinator time at which CLOCK_BOOTTIME was 0
  clock_basis basis_;
  mutable std::atomic<std::int64_t> newest_ms_{0};
};

}  // namespace leasehold::server
