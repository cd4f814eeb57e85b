// Which coordinator a PostgreSQL store belongs to: one row that a coordinator takes, renews and
// releases, and that every commit looks at (architecture.md 5).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "leasehold/actors/store_error.hpp"
#include "src/store/postgres_connection.hpp"

namespace leasehold::storage {

/// The row as it stands. No time is in it: whoever watches it times an unchanged row with its own
/// monotonic clock, so that clocks of two machines are never compared.
struct epoch_state {
  std::int64_t epoch = 0;  ///< rises by one with every take; 0: nobody has taken it yet
  std::string owner;       ///< of the epoch; the end of its sessions' application_name
  std::string address;     ///< where clients reach the owner
  std::int64_t renewals = 0;
  bool released = true;  ///< its owner has ended in order: it may be taken at once
  friend bool operator==(const epoch_state&, const epoch_state&) = default;
};

/// One session for the row of a store. One thread at a time; every call waits for the server, no
/// longer than the access's limits say. A lost session is replaced by the next call.
class postgres_epoch {
 public:
  /// Makes the schema of a database without one, of `shards`; refuses one of another program, of a
  /// newer version, or behind a pooler.
  static actors::store_result<postgres_epoch> open(postgres_access how, std::int64_t shards = 64);

  actors::store_result<epoch_state> read();
  /// Takes the epoch after `seen`, when the row is still as it was seen. Nothing: it is not, or
  /// somebody else was faster. When sessions of the former owner keep it from being taken, they are
  /// ended. The new state has the new epoch; commits of the old one are refused from now on.
  actors::store_result<std::optional<epoch_state>> take(const epoch_state& seen, std::string owner,
                                                        std::string address);
  /// False: the epoch has moved, and this coordinator is deposed.
  actors::store_result<bool> renew(std::int64_t epoch);
  /// Lets anybody take it at once. False: it has moved.
  actors::store_result<bool> release(std::int64_t epoch);

 private:
  explicit postgres_epoch(postgres_access how) : how_(std::move(how)) {}
  std::optional<actors::store_error> connect();
  postgres_result<bool> try_take(const epoch_state& seen, const std::string& owner,
                                 const std::string& address);
  std::optional<actors::store_error> end_sessions_of(const std::string& owner);

  postgres_access how_;
  std::optional<postgres_connection> db_;
};

}  // namespace leasehold::storage
