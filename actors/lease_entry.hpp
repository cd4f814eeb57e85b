// A lease as its shard knows it: awake while something is to be decided or a deadline runs, else at
// rest as one piece of bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "leasehold/actors/messages.hpp"

namespace leasehold::actors {

/// What is written about a lease's history and decided by nobody.
enum class history_row : std::uint8_t { none, base, forget };

/// Events that a lease decides together, at one instant.
struct event_group {
  protocol::instant stamp;
  protocol::instant fired_at;  ///< set: a deadline's group, without events
  session_ptr session;         ///< frames: whose they are
  std::vector<protocol::event> events;
  std::shared_ptr<shard_operation> operation;  ///< set: its event is the only one

  std::vector<protocol::counted_frames> counted;  ///< set: nothing but counted rows to be written
  history_row history = history_row::none;        ///< set: nothing but this row to be written

  [[nodiscard]] bool is_deadline() const noexcept { return fired_at.ms != 0; }
};

/// What is durable about a lease.
struct lease_facts {
  std::shared_ptr<const protocol::record> state;
  protocol::policy_id policy;
  protocol::row_number last_row;
  protocol::row_number submitted_row;
  protocol::reason_counts counts;  ///< of its rows from base_row on
  std::string body;                ///< a job's, as encode_job wrote it; empty: it is no job
};

/// One group of a lease is decided at a time.
struct lease_groups {
  std::optional<event_group> deciding;
  std::uint64_t turn = 0;            ///< of `deciding`
  std::vector<event_group> waiting;  ///< by stamp
};

struct awake_lease : lease_facts {
  actor_handle actor;  ///< none until it decides something
  protocol::row_number group_began;
  std::size_t held_at = 0;               ///< live: where its holder's list has it
  std::unique_ptr<lease_groups> groups;  ///< null: nothing waits and nothing is being decided
};

class lease_entry {
 public:
  lease_entry(std::uint64_t its_mark, protocol::lease_key its_key)
      : mark(its_mark), key(std::move(its_key)) {}

  const std::uint64_t mark;
  const protocol::lease_key key;

  // What sweeps, frames and checkpoints look at without waking it.
  const std::string* queue = nullptr;  ///< a job's; its shard has the name
  protocol::instant last_at;           ///< `at` of the newest row
  protocol::row_number base_row;       ///< where its history begins in the log
  protocol::instant indexed_at;        ///< where the deadline index has it; 0: nowhere
  bool changed = false;                ///< since the last checkpoint

  [[nodiscard]] bool known() const noexcept {
    return awake_ ? awake_->state->known() : !packed_.empty();
  }
  /// Wakes it.
  awake_lease& awake();
  [[nodiscard]] const awake_lease* if_awake() const noexcept { return awake_.get(); }
  /// Nothing waits and nothing is being decided.
  [[nodiscard]] bool idle() const noexcept { return !awake_ || !awake_->groups; }
  /// Packs what is known. It is known, idle, and has no actor.
  void rest();

  [[nodiscard]] std::shared_ptr<const protocol::record> state() const;
  [[nodiscard]] lease_facts facts() const;

 private:
  std::unique_ptr<awake_lease> awake_;  ///< null: at rest
  std::string packed_;                  ///< at rest: what lease_facts says
};

/// The groups of an awake lease, made at the first.
lease_groups& groups_of(awake_lease& lease);
/// The group that is being decided, which is over with this.
event_group take_deciding(awake_lease& lease);

}  // namespace leasehold::actors
