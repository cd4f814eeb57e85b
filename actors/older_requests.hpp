// Requests that a lease's record remembers no more, because it took effect 64 times since: they are
// known for ten minutes yet, so that a late repeat has no new effect. Those from before a start are
// read from the log, of each lease once and not before it is asked for one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "leasehold/protocol/past_requests.hpp"

namespace leasehold::actors {

class older_requests {
 public:
  static constexpr protocol::duration kept{600'000};
  static constexpr std::size_t most = 262'144;  ///< the oldest goes before its time

  /// A lease as it was loaded at `now`: what it had forgotten before is in the log alone.
  void load(std::uint64_t lease, const protocol::record& state, protocol::instant now) {
    if (state.requests.size() < protocol::remembered_requests) return;
    log_until_ = now + kept;
    unread_.insert(lease);
  }
  /// Whether the log may know a request of this lease that neither its record nor this does.
  [[nodiscard]] bool needs_log(std::uint64_t lease, protocol::instant now) const {
    return now < log_until_ && unread_.contains(lease);
  }
  /// What the log has of this lease; `state` as of the newest row that was read, or later.
  void take_log(std::uint64_t lease, const protocol::record& state,
                std::span<const protocol::past_request> found, protocol::instant now);

  /// What the record of this lease forgot with a commit at `now`, if anything.
  void note(std::uint64_t lease, const protocol::record& before, const protocol::record& after,
            protocol::instant now);
  /// Null: it is fresh as far as is known here.
  [[nodiscard]] const protocol::remembered_request* find(std::uint64_t lease,
                                                         const protocol::request_id& id,
                                                         protocol::instant now);

 private:
  using key = std::pair<std::uint64_t, protocol::request_id>;
  struct noted {
    protocol::remembered_request what;
    protocol::instant until;
  };
  void drop_old(protocol::instant now);

  protocol::instant log_until_;     ///< then nothing that counts is older than the start
  std::set<std::uint64_t> unread_;  ///< loaded leases whose rows were not read yet
  std::map<key, noted> known_;
  std::deque<key> in_order_;
};

}  // namespace leasehold::actors
