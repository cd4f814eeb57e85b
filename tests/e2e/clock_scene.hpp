// What the tests of clock faults share: a server whose clocks the test turns, leases of any length,
// and what the store says of time.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "false_clocks.hpp"
#include "stream_peer.hpp"

namespace leasehold::e2e {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;

/// What was stored with one batch.
struct stored_anchor {
  std::string boot_id;
  std::int64_t boottime_ms = 0;
  std::int64_t wall_ms = 0;
  std::int64_t coordinator_ms = 0;

  /// Coordinator time at which CLOCK_BOOTTIME was 0: the same as long as nothing moves the clock.
  [[nodiscard]] std::int64_t origin_ms() const { return coordinator_ms - boottime_ms; }
};
/// Of all batches, oldest first, read with plain SQL.
std::vector<stored_anchor> anchors_of(const live_server& server);

class clock_scene : public on_threads {
 protected:
  [[nodiscard]] live_server make_server(std::vector<std::string> more = {}) {
    return live_server(GetParam(), std::move(more), clocks.variables());
  }

  /// A new session of `w1` with credit for many jobs.
  stream_peer worker_of(live_server& server);
  /// Submits a job whose lease lasts so long, and works on it. `more`: further policy.
  void begin(live_server& server, stream_peer& worker, const std::string& job, milliseconds lasts,
             const json::object& more = {});
  /// The same, ended for good by its expiry and by no grace of a restart: what happened to it is
  /// told by one row.
  void begin_mortal(live_server& server, stream_peer& worker, const std::string& job,
                    milliseconds lasts);
  /// Renews and expects that the lease counts from its arrival, between the two readings of the
  /// coordinator's clock that enclose it.
  void expect_renewed(live_server& server, stream_peer& worker, const std::string& job,
                      std::int64_t sequence);

  /// Coordinator time, by what the store says of it and the clock that the server reads.
  std::int64_t coordinator_now(const live_server& server) const {
    return anchors_of(server).back().origin_ms() + clocks.boottime_ms();
  }

  false_clocks clocks;
};

std::int64_t expires_at(live_server& server, const std::string& job);
/// The row of the job's expiry, which must be dated at the deadline that its grant or its newest
/// renew gave it.
json::object expect_expired_at_its_deadline(live_server& server, const std::string& job);
/// All batches from `first` on are of one boot, and one clock that nothing has moved.
void expect_one_clock(const std::vector<stored_anchor>& anchors, std::size_t first = 0);
/// The last start has said by what the clock went on.
void expect_basis(const live_server& server, const std::string& basis);

}  // namespace leasehold::e2e
