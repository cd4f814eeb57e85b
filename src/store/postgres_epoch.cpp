#include "src/store/postgres_epoch.hpp"

#include <utility>

#include "src/store/postgres_schema.hpp"

namespace leasehold::storage {

namespace {

using actors::store_error;

/// A take waits no longer than this for a transaction of the former owner, then ends its session.
constexpr std::string_view lock_wait = "SET LOCAL lock_timeout = '300ms'";
constexpr int most_tries = 10;

/// What the server keeps of an application_name.
constexpr std::string_view sessions_of_owner =
    "SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity "
    "WHERE application_name = left('leasehold/' || $1, 63) AND datname = current_database() "
    "AND pid <> pg_backend_pid()";

actors::store_result<bool> changed_one(postgres_result<postgres_rows> from) {
  if (auto* fault = std::get_if<postgres_error>(&from)) return *fault;
  return std::get<postgres_rows>(from).changed() == 1;
}

}  // namespace

actors::store_result<postgres_epoch> postgres_epoch::open(postgres_access how,
                                                          std::int64_t shards) {
  postgres_epoch made(std::move(how));
  if (auto fault = made.connect()) return *fault;
  if (auto fault = prepare_schema(*made.db_, shards)) return *fault;
  return made;
}

std::optional<store_error> postgres_epoch::connect() {
  if (db_ && db_->usable()) return std::nullopt;
  db_.reset();
  auto opened = postgres_connection::open(how_);
  if (auto* fault = std::get_if<store_error>(&opened)) return *fault;
  db_ = std::move(std::get<postgres_connection>(opened));
  return std::nullopt;
}

actors::store_result<epoch_state> postgres_epoch::read() {
  if (auto fault = connect()) return *fault;
  auto found = db_->run("SELECT epoch, owner, address, renewals, released FROM epoch");
  if (auto* fault = std::get_if<postgres_error>(&found)) return *fault;
  const auto& rows = std::get<postgres_rows>(found);
  if (rows.count() != 1) {
    return store_error{store_error::kind::corrupt,
                       db_->place() +
                           ": the table leasehold.epoch has not one row; restore the "
                           "database from a backup"};
  }
  return epoch_state{rows.integer(0, 0), std::string(rows.bytes(0, 1)),
                     std::string(rows.bytes(0, 2)), rows.integer(0, 3), rows.boolean(0, 4)};
}

postgres_result<bool> postgres_epoch::try_take(const epoch_state& seen, const std::string& owner,
                                               const std::string& address) {
  bool is_taken = false;
  postgres_pipeline whole(*db_);
  whole.add("BEGIN");
  whole.add(lock_wait);
  whole.add(
      "UPDATE epoch SET epoch = epoch + 1, owner = $6, address = $7, renewals = 0, "
      "released = false WHERE epoch = $1 AND owner = $2 AND address = $3 AND renewals = $4 "
      "AND released = $5",
      postgres_values()
          .integer(seen.epoch)
          .text(seen.owner)
          .text(seen.address)
          .integer(seen.renewals)
          .boolean(seen.released)
          .text(owner)
          .text(address),
      [&is_taken](const postgres_rows& rows) { is_taken = rows.changed() == 1; });
  whole.add("COMMIT");
  if (auto fault = whole.finish()) return *fault;
  return is_taken;
}

std::optional<store_error> postgres_epoch::end_sessions_of(const std::string& owner) {
  if (auto fault = connect()) return fault;
  auto ended = db_->run(sessions_of_owner, postgres_values().text(owner));
  if (auto* fault = std::get_if<postgres_error>(&ended)) return *fault;
  return std::nullopt;
}

actors::store_result<std::optional<epoch_state>> postgres_epoch::take(const epoch_state& seen,
                                                                      std::string owner,
                                                                      std::string address) {
  const epoch_state wanted{seen.epoch + 1, std::move(owner), std::move(address), 0, false};
  std::optional<store_error> trouble;
  for (int tries = 0; tries < most_tries; ++tries) {
    if (auto fault = connect()) return *fault;
    const auto said = try_take(seen, wanted.owner, wanted.address);
    if (const bool* is_taken = std::get_if<bool>(&said)) {
      if (*is_taken) return std::optional(wanted);
      // An answer to the try before this one may have been lost.
      auto now = read();
      if (auto* fault = std::get_if<store_error>(&now)) return *fault;
      const auto& row = std::get<epoch_state>(now);
      if (row.epoch == wanted.epoch && row.owner == wanted.owner) return std::optional(row);
      return std::optional<epoch_state>{};
    }
    const auto& fault = std::get<postgres_error>(said);
    trouble = fault;
    if (!fault.is_lost && !may_pass(fault.state)) return *trouble;
    // The former owner may stand still in the middle of a commit: its sessions are ended.
    if (!fault.is_lost && !seen.owner.empty()) {
      if (auto refused = end_sessions_of(seen.owner)) return *refused;
    }
  }
  return *trouble;
}

actors::store_result<bool> postgres_epoch::renew(std::int64_t epoch) {
  if (auto fault = connect()) return *fault;
  return changed_one(db_->run("UPDATE epoch SET renewals = renewals + 1 WHERE epoch = $1",
                              postgres_values().integer(epoch)));
}

actors::store_result<bool> postgres_epoch::release(std::int64_t epoch) {
  if (auto fault = connect()) return *fault;
  return changed_one(db_->run("UPDATE epoch SET released = true WHERE epoch = $1",
                              postgres_values().integer(epoch)));
}

}  // namespace leasehold::storage
