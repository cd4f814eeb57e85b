// Who waits in line for one lock. A line is nobody's record: it is gone with the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "leasehold/actors/messages.hpp"

namespace leasehold::actors {

class lock_line {
 public:
  using waiter = std::shared_ptr<shard_operation>;

  /// At the end. `number` is above those of all who wait.
  void add(std::uint64_t number, shard_operation what);
  [[nodiscard]] bool empty() const noexcept { return waiters_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return waiters_.size(); }

  /// Whoever came first; the line is not empty.
  waiter take_first() { return take(waiters_.begin()); }
  /// Null: it waits no more.
  waiter take(std::uint64_t number);
  /// The waiter that this Acquire frame of the session put here; 0: none.
  [[nodiscard]] std::uint64_t of_frame(session_id session, std::int64_t acquire) const;
  /// Those who wait under this request.
  std::vector<waiter> take_copies(const protocol::request_id& request);
  /// Those at the front whom nobody waits for any more, or `everywhere` in the line.
  std::vector<waiter> take_gone(bool everywhere);

  /// Came without a wish to wait while it was not known who has the lock: judged once it is.
  std::vector<shard_operation> passers;
  protocol::instant closed_until;  ///< nobody is let through before: the store took no write
  protocol::instant wakes_at;      ///< an alarm is set for then; 0: none
  protocol::instant pruned_at;     ///< when those that are gone were looked for

 private:
  using waiters = std::map<std::uint64_t, waiter>;  ///< by number
  waiter take(waiters::iterator at);

  waiters waiters_;
  /// The numbers of those that a session's Acquire asked for.
  std::map<std::pair<session_id, std::int64_t>, std::uint64_t> by_frame_;
  std::multimap<protocol::request_id, std::uint64_t> by_request_;
};

}  // namespace leasehold::actors
