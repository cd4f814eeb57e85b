// Requests that a lease's record remembers no more, because it took effect 64 times since: they are
// known to this process for ten minutes yet, so that a late repeat has no new effect.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>

#include "leasehold/protocol/record.hpp"

namespace leasehold::actors {

class older_requests {
 public:
  static constexpr protocol::duration kept{600'000};
  static constexpr std::size_t most = 262'144;  ///< the oldest goes before its time

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

  std::map<key, noted> known_;
  std::deque<key> in_order_;
};

}  // namespace leasehold::actors
