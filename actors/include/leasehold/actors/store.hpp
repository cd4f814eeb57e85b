// The store port: what the actors ask of a database. SQLite and PostgreSQL implement it in
// src/store; both pass one conformance suite.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "leasehold/actors/dispatch_store.hpp"
#include "leasehold/actors/store_error.hpp"
#include "leasehold/protocol/dispatch.hpp"
#include "leasehold/protocol/evidence.hpp"
#include "leasehold/protocol/past_requests.hpp"

namespace leasehold::actors {

using chain_hash = std::array<std::byte, 32>;

/// Ties the coordinator's clock to the machine's, stored with each batch (protocol.md 3).
struct clock_anchor {
  std::string boot_id;
  std::int64_t boottime_ms = 0;
  std::int64_t wall_ms = 0;
  protocol::instant coordinator_time;
  friend bool operator==(const clock_anchor&, const clock_anchor&) = default;
};

/// What one durable commit carries: the encoded row groups of everything that waited, in order.
struct batch {
  std::vector<std::string> groups;  ///< row_group::bytes of each
  std::int64_t rows = 0;
  clock_anchor anchor;
  /// The policies that its policy rows make known; stored with it, so that a start finds them.
  std::vector<std::pair<protocol::policy_id, protocol::policy>> policies;
  /// What its rows mean for cancellation dispatch, and handles that were registered: written in the
  /// same transaction, in this order. A batch may have nothing else.
  std::vector<protocol::dispatch_change> dispatches;
};

/// A batch as it stands in the log.
struct stored_batch {
  protocol::row_number first_row;
  protocol::row_number last_row;
  std::int64_t format = 0;
  std::string rows;
  chain_hash chain{};  ///< over the hash before and this batch
  clock_anchor anchor;
};

/// Where the log ends: what `leasehold head` prints.
struct log_head {
  protocol::row_number last_row;
  chain_hash chain{};
  friend bool operator==(const log_head&, const log_head&) = default;
};

struct committed {
  protocol::row_number first_row;
  log_head head;
};

/// A record as a checkpoint keeps it.
struct checkpoint_entry {
  protocol::lease_key key;
  protocol::fold::lease_image image;
};

/// What is true of a store as a whole besides its records.
struct store_state {
  /// By shard: the highest generation that was forgotten (architecture.md 4).
  std::array<protocol::generation, protocol::store_shards> floors{};
  /// Since a backup was restored nothing is granted before; 0: never restored, or long past.
  protocol::instant grants_from;
  friend bool operator==(const store_state&, const store_state&) = default;
};

/// A bounded slice of the checkpoint: records as of `upto`, which becomes durable with the last
/// slice.
struct checkpoint_slice {
  std::vector<checkpoint_entry> changed;
  std::vector<protocol::lease_key> forgotten;
  protocol::row_number upto;
  bool last = false;
  store_state state;  ///< as of `upto`; of the last slice
};

/// All that a start needs: the checkpoint, and the rows after it through `on_batch`.
struct recovered_head {
  log_head head;
  protocol::row_number checkpoint;  ///< records are as of this row
  std::optional<clock_anchor> anchor;
  std::string store_id;  ///< 32 hex digits, made with the store
  std::int64_t shards = 64;
  protocol::row_number anchor_row;  ///< rows up to it were cut
};

/// Who holds a lease as the store has it; generation 0 and no holder: nothing is stored.
struct stored_grant {
  protocol::generation gen;
  protocol::holder held_by;
  friend bool operator==(const stored_grant&, const stored_grant&) = default;
};

class store {
 public:
  virtual ~store() = default;

  /// Reads state, policies and records of the checkpoint, then the batches after it, in order.
  /// Called once, before anything else, on the caller's thread. A broken chain or row is an error
  /// that names it.
  virtual store_result<recovered_head> recover(
      const std::function<void(const store_state&)>& on_state,
      const std::function<void(checkpoint_entry&&)>& on_record,
      const std::function<void(protocol::policy_id, const protocol::policy&)>& on_policy,
      const std::function<void(stored_batch&&)>& on_batch) = 0;

  /// Makes a batch durable on the store's own writer thread, then calls `done` there. Batches
  /// become durable in the order of the calls. After a failure nothing of the batch is in the log.
  virtual void commit(batch what, std::function<void(store_result<committed>)> done) = 0;

  /// Writes a slice of the checkpoint between commits; `done` on the writer thread. The records of
  /// each shard actor come in the order of their keys unless few of them have changed.
  virtual void checkpoint(checkpoint_slice slice, std::function<void(store_result<bool>)> done) = 0;

  /// Reads the grant of a lease as of its row `newest`, from the checkpoint and the rows after it
  /// (protocol.md 7a), and calls `done` on a thread of the store. A bounded number of reads waits;
  /// beyond it the answer is busy, at once and on the caller's thread.
  virtual void read_grant(protocol::lease_key key, protocol::row_number newest,
                          std::function<void(store_result<stored_grant>)> done) = 0;

  /// The requests that took effect on a lease in rows up to `newest`, written at `since` or later,
  /// the oldest first; after row `newest` the lease has generation `gen`. Of at most 65,536 rows of
  /// the lease. `done` as for read_grant.
  virtual void read_requests(
      protocol::lease_key key, protocol::row_number newest, protocol::generation gen,
      protocol::instant since,
      std::function<void(store_result<std::vector<protocol::past_request>>)> done) = 0;

  /// Where the log may be cut: the last row of the newest batch written before `at`, 0 when there
  /// is none. `done` on a thread of the store.
  virtual void find_row_before(protocol::instant at,
                               std::function<void(store_result<protocol::row_number>)> done) = 0;
  /// Removes whole batches from the front of the log, none that has a row above `upto` or above the
  /// checkpoint, in slices between commits; the log then begins behind an anchor. `done` on a
  /// thread of the store, with the row of the anchor.
  virtual void cut(protocol::row_number upto,
                   std::function<void(store_result<protocol::row_number>)> done) = 0;

  /// The policy of an id, for readers: any thread.
  virtual store_result<std::optional<protocol::policy>> find_policy(protocol::policy_id id) = 0;

  /// Evidence, for readers: any thread, each call a consistent view of what is durable.
  /// The newest first: walks prev_row from `newest` for at most `limit` rows.
  virtual store_result<std::vector<protocol::stored_row>> rows_of_lease(
      const protocol::lease_key& key, protocol::row_number newest, std::size_t limit) = 0;
  /// The rows from `from` on, in order, at most `limit`.
  virtual store_result<std::vector<protocol::stored_row>> rows_from(protocol::row_number from,
                                                                    std::size_t limit) = 0;
  /// The batches from the one that holds `from` on, in order, at most `limit`.
  virtual store_result<std::vector<stored_batch>> batches_from(protocol::row_number from,
                                                               std::size_t limit) = 0;
  virtual store_result<log_head> head() = 0;

  /// The tables of cancellation dispatch beside the log, written by this process in the order of
  /// its other commits. Lives as long as the store. One that keeps none has `no_dispatches`.
  virtual dispatch_store& dispatches() = 0;
};

}  // namespace leasehold::actors
