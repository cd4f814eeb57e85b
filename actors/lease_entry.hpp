// A lease as its shard knows it: awake while something is to be decided or a deadline runs, else at
// rest as one piece of bytes.
#pragma once

#include <boost/intrusive/set_hook.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/named_bytes.hpp"
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
  std::string body;                ///< as encode_job or encode_lock wrote it; may be empty
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

/// Where the table keeps an entry in the order of the keys.
using ordered_hook =
    boost::intrusive::set_base_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>,
                                    boost::intrusive::optimize_size<true>>;

// There are as many of them as leases are known, so what each of them takes is counted in bytes.
class lease_entry : public ordered_hook {
 public:
  /// `tenant` stays where it is for as long as the entry is there.
  lease_entry(std::uint64_t its_mark, const protocol::tenant_id& tenant,
              const protocol::lease_id& lease);

  const std::uint64_t mark;

  // What sweeps, frames and checkpoints look at without waking it.
  const std::string* named = nullptr;  ///< a job's queue, a lock's program; its shard has the text
  protocol::instant last_at;           ///< `at` of the newest row that is no base row
  protocol::row_number base_row;       ///< where its history begins in the log
  protocol::instant indexed_at;        ///< where the deadline index has it; 0: nowhere
  const std::uint8_t store_shard;      ///< what shard_of says of its key
  bool changed = false;                ///< since the last checkpoint
  bool is_lock = false;

  /// Null: it is no job.
  [[nodiscard]] const std::string* queue() const noexcept { return is_lock ? nullptr : named; }
  /// Null: it is no lock.
  [[nodiscard]] const std::string* program() const noexcept { return is_lock ? named : nullptr; }
  [[nodiscard]] const protocol::tenant_id& tenant() const noexcept { return *tenant_; }
  /// As long as nothing wakes it or puts it to rest.
  [[nodiscard]] std::string_view lease() const noexcept { return packed_.name(); }
  [[nodiscard]] protocol::lease_key key() const { return {*tenant_, protocol::lease_id{lease()}}; }

  [[nodiscard]] bool known() const noexcept {
    return awake_ ? awake_->state->known() : !packed_.bytes().empty();
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
  const protocol::tenant_id* tenant_;
  std::unique_ptr<awake_lease> awake_;  ///< null: at rest
  named_bytes packed_;                  ///< its id, and at rest what lease_facts says
};

/// The groups of an awake lease, made at the first.
lease_groups& groups_of(awake_lease& lease);
/// The group that is being decided, which is over with this.
event_group take_deciding(awake_lease& lease);

}  // namespace leasehold::actors
