// The actor that owns one lease: its record and its fencing counter. It decides a group of events
// at one instant, hands the evidence to its shard, and takes nothing more until the shard says,
// with the next group or an undo, what became of the commit.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "actors/lean_actor.hpp"
#include "actors/refusal_budget.hpp"
#include "leasehold/actors/messages.hpp"

namespace leasehold::actors {

/// What became of one frame: the material of its Verdict or of an operation's answer.
struct frame_answer {
  std::int64_t frame_id = 0;
  std::int64_t epoch = 0;
  protocol::event_kind kind{};
  protocol::decision decision{};
  protocol::reason reason{};
  protocol::generation gen;
  protocol::sequence seq;
  bool counted = false;       ///< it has no row of its own
  std::uint64_t content = 0;  ///< a hash of the frame, where it is counted
};

/// How the live generation of before ended within a group.
enum class closing : std::uint8_t { none, by_holder, expired, revoked, conflict, settled };

/// What a lease made of one group. Nothing of it is true before its rows are durable.
struct decision_group {
  std::string rows;
  std::int64_t count = 0;
  protocol::reason_counts counts;  ///< of the rows, where the lease is known
  protocol::instant last_at;       ///< of the last row
  std::shared_ptr<const protocol::record> after;
  protocol::policy_id policy;
  std::vector<frame_answer> answers;  ///< of the group's own events, in order
  std::vector<frame_answer> finals;   ///< of frames that were deferred before
  closing closed = closing::none;
};

/// A lease's answer to lease_work, with the `entry` and the events that it was given.
struct lease_decided {
  std::uint64_t entry = 0;
  std::vector<protocol::event> events;
  decision_group group;
};

/// Marks where deferred frames of this group will stand in the evidence once `first` is known: the
/// rows of a group are numbered from -1 down until then.
std::shared_ptr<const protocol::record> settle_rows(std::shared_ptr<const protocol::record> after,
                                                    protocol::row_number first);

/// There is one for every lease that is awake, so its size counts: what only a message needs comes
/// with the message, and its shard is whoever sent it.
class lease_actor final : public lean_actor {
 public:
  /// `state`: after the last group, durable or not.
  lease_actor(caf::actor_config& config, std::shared_ptr<const protocol::record> state);

 protected:
  void receive(message_content& what) override;

 private:
  void decide(lease_work& work);

  std::shared_ptr<const protocol::record> state_;
};

}  // namespace leasehold::actors

LEASEHOLD_MESSAGE(leasehold::actors::lease_decided)
