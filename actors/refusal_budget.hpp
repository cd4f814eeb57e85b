// The budget of repeated refusals (protocol.md 6): who floods a lease with frames that are refused
// or ignored gets a hundred rows a minute for each kind of refusal; the rest is counted.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "leasehold/protocol/evidence.hpp"

namespace leasehold::actors {

/// What is counted together, within one lease.
struct refusal_key {
  protocol::generation gen;
  protocol::event_kind kind{};
  protocol::reason why{};
  friend auto operator<=>(const refusal_key&, const refusal_key&) = default;
};

/// How many refusals of a key had a row in the running minute.
using refusals_seen = std::map<refusal_key, std::int64_t>;

inline constexpr std::int64_t refusal_rows_a_minute = 100;
inline constexpr protocol::duration refusal_window{60'000};

/// The refusals of all leases of a shard, by mark of the lease. What it keeps is bounded: past
/// `most_keys` new kinds of refusals are not counted and simply have their rows.
class refusal_budget {
 public:
  static constexpr std::size_t most_keys = 100'000;

  struct tally {
    protocol::instant since;
    std::int64_t seen = 0;            ///< with a row of their own
    protocol::counted_frames beyond;  ///< number is 0 until the budget is spent
  };

  /// What the lease needs to know before it decides: empty for one without refusals.
  [[nodiscard]] refusals_seen seen_of(std::uint64_t mark, protocol::instant now) const {
    refusals_seen seen;
    for (auto it = tallies_.lower_bound({mark, {}});
         it != tallies_.end() && it->first.first == mark; ++it) {
      if (it->second.since + refusal_window > now) seen.emplace(it->first.second, it->second.seen);
    }
    return seen;
  }

  /// A refusal that has its row.
  void note(std::uint64_t mark, const refusal_key& key, protocol::instant now) {
    if (tallies_.size() >= most_keys && !tallies_.contains({mark, key})) return;
    auto& t = tallies_[{mark, key}];
    if (t.beyond.number == 0 && t.since + refusal_window <= now) t = {now, 0, {}};
    ++t.seen;
  }

  /// A refusal without one.
  void count(std::uint64_t mark, const refusal_key& key, protocol::decision decision,
             protocol::sequence seq, std::uint64_t content) {
    auto& c = tallies_[{mark, key}].beyond;
    if (c.number == 0)
      c = {key.gen, key.kind, decision, key.why, 0, seq, seq, 0xcbf29ce484222325ULL};
    ++c.number;
    c.last = seq;
    c.hash = (c.hash ^ content) * 0x100000001b3ULL;
  }

  /// Forgets the minutes that are over, and yields what was only counted in them, by lease.
  std::map<std::uint64_t, std::vector<protocol::counted_frames>> close(protocol::instant now) {
    std::map<std::uint64_t, std::vector<protocol::counted_frames>> counted;
    for (auto it = tallies_.begin(); it != tallies_.end();) {
      if (it->second.since + refusal_window > now) {
        ++it;
        continue;
      }
      auto& of_lease = counted[it->first.first];
      if (it->second.beyond.number > 0) of_lease.push_back(it->second.beyond);
      it = tallies_.erase(it);
    }
    return counted;
  }

  [[nodiscard]] bool knows(std::uint64_t mark) const {
    const auto it = tallies_.lower_bound({mark, {}});
    return it != tallies_.end() && it->first.first == mark;
  }
  [[nodiscard]] bool empty() const noexcept { return tallies_.empty(); }

 private:
  std::map<std::pair<std::uint64_t, refusal_key>, tally> tallies_;
};

}  // namespace leasehold::actors
