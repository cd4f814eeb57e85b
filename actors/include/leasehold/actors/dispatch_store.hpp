// The tables of cancellation dispatch (cancellation-dispatch.md), as a dispatcher, an operator and
// the coordinator use them. Several processes may write them at once; SQLite and PostgreSQL
// implement it in src/store, and both pass one suite.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "leasehold/actors/store_error.hpp"
#include "leasehold/protocol/dispatch.hpp"

namespace leasehold::actors {

/// The most that one page, or one call of claim or report, holds.
inline constexpr std::size_t most_dispatches = 64;

/// Where a page begins; empty: at the first.
struct dispatch_cursor {
  std::string after;  ///< opaque; at most 512 bytes
  friend bool operator==(const dispatch_cursor&, const dispatch_cursor&) = default;
};

/// Which records a page has, in the order of their keys.
struct dispatch_query {
  /// Empty: all.
  std::vector<protocol::dispatch_status> statuses;
  std::optional<protocol::dispatch_stage> stage;
  std::optional<std::string> host;
  std::optional<protocol::tenant_id> tenant;
  /// Only what may be claimed now: pending or retry_wait and due, or leased past its claim.
  bool claimable = false;
  dispatch_cursor from;
  std::size_t limit = 32;  ///< 1 to most_dispatches
};

struct dispatch_page {
  std::vector<protocol::dispatch_record> records;
  /// Where the next page begins; nothing: this was the last.
  std::optional<dispatch_cursor> next;
};

/// What came of one claim: the record after it, and the handle of a process stage.
struct dispatch_claimed {
  protocol::reason why = protocol::reason::none;  ///< none: claimed
  protocol::dispatch_record record;               ///< as it stands now; empty key: there is none
  std::optional<protocol::process_handle> process;
};

struct dispatch_reported {
  protocol::reason why = protocol::reason::none;  ///< none: written
  protocol::dispatch_record record;
};

/// Counts for metrics.
struct dispatch_counts {
  struct cell {
    protocol::dispatch_stage stage = protocol::dispatch_stage::stream;
    protocol::dispatch_status status = protocol::dispatch_status::pending;
    protocol::dispatch_result last_result = protocol::dispatch_result::none;
    std::int64_t records = 0;
    protocol::instant oldest;  ///< created_at of the oldest
  };
  std::vector<cell> cells;
};

/// Every call takes a bounded number of records and makes one short transaction, durable before it
/// is answered; a record whose turn fails is answered with store_unavailable and does not take
/// others with it. `done` runs on a thread of the store, or inside the call; a bounded number of
/// calls waits, beyond it the answer is busy at once. `now` is the store's: the coordinator's
/// clock. A key without a record is answered with unknown_dispatch. No record that is answered has
/// a token, but that of a claim which was made.
class dispatch_store {
 public:
  template <class T>
  using then = std::function<void(store_result<T>)>;

  virtual ~dispatch_store() = default;

  /// The coordinator's clock as this process can tell it.
  virtual store_result<protocol::instant> now() = 0;

  virtual void page(dispatch_query what, then<dispatch_page> done) = 0;
  /// Answers in the order of `asked`; each is judged for itself. `pace` says how long a claim is.
  virtual void claim(std::vector<protocol::dispatch_claim> asked, protocol::dispatch_pace pace,
                     then<std::vector<dispatch_claimed>> done) = 0;
  virtual void report(std::vector<protocol::dispatch_report> said, protocol::dispatch_pace pace,
                      then<std::vector<dispatch_reported>> done) = 0;
  /// An operator's retry or resolve of one record; unknown_dispatch: there is none.
  virtual void operate(protocol::lease_key key, protocol::dispatch_operation what,
                       then<dispatch_reported> done) = 0;

  virtual void find(protocol::lease_key key,
                    then<std::optional<protocol::dispatch_record>> done) = 0;
  /// The events of a job with a version above `after`, in order.
  virtual void events(protocol::lease_key key, std::int64_t after, std::size_t limit,
                      then<std::vector<protocol::dispatch_event>> done) = 0;
  /// Records that are not closed whose newest result is already_exited and that were changed since
  /// `since`: what the coordinator takes as proof. In the order of their change.
  virtual void exited(protocol::instant since, std::size_t limit,
                      then<std::vector<protocol::dispatch_record>> done) = 0;
  virtual void count(then<dispatch_counts> done) = 0;
};

}  // namespace leasehold::actors
