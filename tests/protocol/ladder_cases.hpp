// Leases and frames for the walks over the ladder: one lease of the third generation, held by `a`,
// judged at 10'000 ms, of which each walk varies what it is about.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/protocol/ladder.hpp"

namespace leasehold::ladder {

inline constexpr protocol::instant judged_at{10'000};
inline constexpr std::int64_t issued_ms = 9'000;
inline constexpr std::int64_t skew_ms = 50;
/// Highest sent_at of the generations that are unproven in these leases.
inline constexpr std::int64_t last_sent_ms = 9'800;

protocol::policy usual_policy();

/// A lease in `state`, with every field that such a lease has.
protocol::record lease_in(protocol::lease_state state,
                          protocol::lease_kind kind = protocol::lease_kind::job);

/// A frame of the current generation by its holder, sent just now.
protocol::event frame_of(protocol::event_kind kind);

/// A request that took effect before.
protocol::remembered_request asked(const char* id, protocol::event_kind kind, std::int64_t gen,
                                   const char* from);

/// Compares the library's verdict with the ladder's and keeps the first few that differ.
class comparison {
 public:
  void frame(const protocol::record& lease, const protocol::policy& chosen,
             const protocol::event& frame);
  void operation(const protocol::record& lease, const protocol::policy& chosen,
                 const protocol::event& what);

  [[nodiscard]] const std::string& differences() const noexcept { return differences_; }
  [[nodiscard]] std::int64_t judged() const noexcept { return judged_; }
  /// Every reason that the ladder gave, in words.
  [[nodiscard]] std::set<std::string> reasons() const;

 private:
  void compare(const protocol::record& lease, const protocol::policy& chosen,
               const protocol::event& what, const answer& wanted);

  std::set<protocol::reason> reasons_;
  std::string differences_;
  std::int64_t judged_ = 0;
  int named_ = 0;
};

/// Variants of the unproven generations of a lease of generation 3: none; 1; 1 and the current one;
/// 1 and a nameless one; the current one.
inline constexpr int unproven_variants = 5;
void set_unproven(protocol::record& lease, int variant);

/// Variants of how the lease ended: nothing; success told by nobody; failed as reported with
/// detail; cancelled as reported without.
inline constexpr int ending_variants = 4;
void set_ending(protocol::record& lease, int variant);

}  // namespace leasehold::ladder
