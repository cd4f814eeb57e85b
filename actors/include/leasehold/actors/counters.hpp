// What the coordinator counts, as plain atomics: actors, sessions and stores add, the metrics page
// reads. Nothing here knows how it is exported, and every table is bounded: a label is a reason, a
// decision or a kind, never something that a caller chose.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "leasehold/protocol/event.hpp"
#include "leasehold/protocol/reason.hpp"
#include "leasehold/protocol/record.hpp"

namespace leasehold::actors {

/// One number that any thread adds to. Order between two of them is not promised.
class tally {
 public:
  void add(std::int64_t by = 1) noexcept { value_.fetch_add(by, std::memory_order_relaxed); }
  void set(std::int64_t to) noexcept { value_.store(to, std::memory_order_relaxed); }
  [[nodiscard]] std::int64_t value() const noexcept {
    return value_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<std::int64_t> value_{0};
};

/// How long things took, in microseconds, by fixed bounds.
class latency_tally {
 public:
  /// Upper bounds, inclusive; what is above the last one counts in one more bucket.
  static constexpr std::array<std::int64_t, 16> bounds_us{
      100,    250,     500,     1'000,   2'500,     5'000,     10'000,    25'000,
      50'000, 100'000, 250'000, 500'000, 1'000'000, 2'500'000, 5'000'000, 10'000'000};

  void observe_us(std::int64_t us) noexcept {
    std::size_t i = 0;
    while (i < bounds_us.size() && us > bounds_us[i]) ++i;
    buckets_[i].add();
    sum_us_.add(us);
  }
  /// Observations in the bucket with the i-th bound alone; i == bounds_us.size(): above all bounds.
  [[nodiscard]] std::int64_t bucket(std::size_t i) const noexcept { return buckets_[i].value(); }
  [[nodiscard]] std::int64_t sum_us() const noexcept { return sum_us_.value(); }

 private:
  std::array<tally, bounds_us.size() + 1> buckets_;
  tally sum_us_;
};

/// May be one object for all threads, or one a thread: the metrics page adds them up.
struct counters {
  static constexpr std::size_t kinds = 64;     ///< above every event_kind
  static constexpr std::size_t decisions = 6;  ///< above every decision
  static constexpr std::size_t reasons = 256;  ///< above every number of reason.def
  static constexpr std::size_t states = 14;    ///< above every lease_state

  /// Judged events by kind and decision, and by decision and reason; told after the commit.
  std::array<std::array<tally, decisions>, kinds> judged;
  std::array<std::array<tally, reasons>, decisions> answered;
  void count(protocol::event_kind kind, protocol::decision decision,
             protocol::reason why) noexcept {
    const auto d = static_cast<std::size_t>(decision) % decisions;
    judged[static_cast<std::size_t>(kind) % kinds][d].add();
    answered[d][static_cast<std::size_t>(why) % reasons].add();
  }

  /// What was refused before a lease was touched: by the API, the admission or a session.
  std::array<tally, reasons> refused;
  void refuse(protocol::reason why) noexcept {
    refused[static_cast<std::size_t>(why) % reasons].add();
  }

  tally lock_waiters;  ///< gauge: in line for a lock
  tally locks_held;    ///< gauge

  // ---- store
  tally commits;
  tally commit_failures;
  tally store_failing;  ///< gauge: 1 while the store fails
  tally store_damaged;  ///< gauge: 1 once the log was found damaged
  tally rows;
  tally row_bytes;
  latency_tally commit_time;  ///< from the hand-over to the durable answer
  tally checkpoint_row;       ///< gauge: records are checkpointed as of this row
  tally last_row;             ///< gauge: the newest durable row
  tally first_row;            ///< gauge: where the log begins

  // ---- leases and queues (gauges)
  std::array<tally, states> leases;  ///< by state
  tally deadlines_armed;             ///< entries of the deadline indexes
  tally jobs_ready;
  tally jobs_waiting;
  tally payload_bytes;  ///< payloads kept in memory
  tally leases_forgotten;
  latency_tally expiry_lateness;  ///< from a deadline to its firing

  // ---- cancellation dispatch, as far as this process does it
  struct dispatch_counters {
    static constexpr std::size_t results_count = 10;  ///< above every dispatch_result
    tally claims;
    std::array<tally, results_count> results;  ///< by result, as reported
    tally cycles;
    tally cycle_errors;  ///< cycles, and looks for what has exited, that the store ended
  };
  dispatch_counters dispatch;

  // ---- sessions
  tally sessions;  ///< gauge: live
  tally sessions_opened;
  tally sessions_superseded;
  tally bad_frames;
  tally frames_in;
  tally frames_out;
  tally messages_in;
  tally messages_out;
  tally frames_in_flight;  ///< gauge
  tally offers_withdrawn;
  tally watchers;  ///< gauge: live readers of events

  // ---- alarms: anything but 0 wants a person
  tally unknown_generations;  ///< frames with a generation that was never granted
  tally ownership_conflicts;
  tally grants_contradicted;  ///< the stored grant named another holder than the actor did
};

}  // namespace leasehold::actors
