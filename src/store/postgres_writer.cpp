#include "src/store/postgres_writer.hpp"

#include <openssl/rand.h>

#include <algorithm>
#include <map>
#include <thread>
#include <utility>

#include "leasehold/protocol/record_image.hpp"
#include "src/store/postgres_dispatch_changes.hpp"

namespace leasehold::storage {

namespace {

using actors::store_error;
using protocol::row_number;
using std::chrono::milliseconds;

constexpr milliseconds first_pause{10};
constexpr milliseconds longest_pause{250};

/// The key of a transaction that inserts no batch: nobody else has it.
std::string new_mark() {
  std::string bits(16, '\0');
  RAND_bytes(reinterpret_cast<unsigned char*>(bits.data()), static_cast<int>(bits.size()));
  return bits;
}

bool is_final(const store_error& fault) {
  return fault.what == store_error::kind::fatal || fault.what == store_error::kind::deposed;
}

/// Every policy once, the last one of an id.
void insert_policies(postgres_pipeline& into, const std::vector<const actors::batch*>& of) {
  std::map<std::int64_t, std::string> chosen;
  for (const actors::batch* each : of) {
    for (const auto& [id, policy] : each->policies) {
      chosen[static_cast<std::int64_t>(id.value)] = protocol::canonical_text(policy);
    }
  }
  if (chosen.empty()) return;
  std::vector<std::int64_t> ids;
  std::vector<std::string_view> texts;
  for (const auto& [id, text] : chosen) {
    ids.push_back(id);
    texts.emplace_back(text);
  }
  into.add(
      "INSERT INTO policy (id, text) SELECT * FROM unnest($1::bigint[], $2::text[]) "
      "ON CONFLICT (id) DO UPDATE SET text = excluded.text",
      postgres_values().integers(ids).texts(texts));
}

/// Records as columns: their keys are views of the slice that they come from.
struct record_columns {
  std::vector<std::string_view> tenants;
  std::vector<std::string_view> leases;
  std::vector<std::int64_t> last_rows;
  std::vector<std::int64_t> checks;
  std::vector<std::string> images;
};

/// Every key once, the last image of it.
record_columns columns_of(const actors::checkpoint_slice& what, std::size_t begin,
                          std::size_t end) {
  std::map<protocol::lease_key, const actors::checkpoint_entry*> newest;
  for (std::size_t i = begin; i < end; ++i) newest[what.changed[i].key] = &what.changed[i];
  record_columns columns;
  for (const auto& [key, entry] : newest) {
    columns.tenants.emplace_back(entry->key.tenant.value);
    columns.leases.emplace_back(entry->key.lease.value);
    columns.last_rows.push_back(entry->image.last_row.value);
    columns.images.push_back(protocol::encode_image(entry->image));
    columns.checks.push_back(static_cast<std::int64_t>(record_check(key, columns.images.back())));
  }
  return columns;
}

void upsert_records(postgres_pipeline& into, const record_columns& columns) {
  if (columns.tenants.empty()) return;
  const std::vector<std::string_view> images(columns.images.begin(), columns.images.end());
  into.add(
      "INSERT INTO record (tenant, lease, last_row, check_value, image) "
      "SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::bigint[], $5::bytea[]) "
      "ON CONFLICT (tenant, lease) DO UPDATE SET last_row = excluded.last_row, "
      "check_value = excluded.check_value, image = excluded.image",
      postgres_values()
          .byte_texts(columns.tenants)
          .byte_texts(columns.leases)
          .integers(columns.last_rows)
          .integers(columns.checks)
          .byte_texts(images));
}

}  // namespace

postgres_writer::postgres_writer(const postgres_options& how, postgres_connection db,
                                 store_facts facts, actors::log_head head)
    : log_writer(std::move(facts), head), how_(how), place_(db.place()), db_(std::move(db)) {
  start();
}

store_error postgres_writer::deposed() const {
  return {store_error::kind::deposed,
          place_ + ": another coordinator has taken the store over, and epoch " +
              std::to_string(how_.epoch) + " has ended; nothing of this one is written any more"};
}

store_error postgres_writer::unsettled(const store_error& last) const {
  return {store_error::kind::fatal, last.sentence +
                                        "; whether a commit is in the log could not be told for " +
                                        std::to_string(how_.settle_for.count()) +
                                        " ms, so the process must stop and recover"};
}

// ---- the connection

std::optional<store_error> postgres_writer::connect() {
  if (db_ && db_->usable()) return std::nullopt;
  db_.reset();
  auto opened = postgres_connection::open(how_.access);
  if (auto* fault = std::get_if<store_error>(&opened)) {
    is_down_ = true;
    return *fault;
  }
  db_ = std::move(std::get<postgres_connection>(opened));
  is_down_ = false;
  end_former_session();
  auto fault = check_log();
  if (fault) db_.reset();
  return fault;
}

/// The session that was lost may still wait in the middle of our transaction; it must not end it
/// later. Without the right to, its own time limits end it.
void postgres_writer::end_former_session() {
  if (former_pid_ == 0) return;
  db_->run(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1 "
      "AND application_name = current_setting('application_name') AND pid <> pg_backend_pid()",
      postgres_values().integer(std::exchange(former_pid_, 0)));
}

/// A server that took over from another, or was put back, may not have what was confirmed. Nothing
/// is written behind the gap.
std::optional<store_error> postgres_writer::check_log() {
  bool is_ours = false;
  bool is_whole = false;
  postgres_pipeline both(*db_);
  both.add("SELECT 1 FROM epoch WHERE epoch = $1", postgres_values().integer(how_.epoch),
           [&](const postgres_rows& rows) { is_ours = rows.count() == 1; });
  both.add(
      "(SELECT last_row, chain FROM batch WHERE first_row <= $1 ORDER BY first_row DESC LIMIT 1) "
      "UNION ALL SELECT anchor_row, anchor_chain FROM store",
      postgres_values().integer(head_.last_row.value), [&](const postgres_rows& rows) {
        for (int i = 0; i < rows.count(); ++i) {
          is_whole = is_whole || (rows.integer(i, 0) == head_.last_row.value &&
                                  chain_of(rows.bytes(i, 1)) == head_.chain);
        }
      });
  if (auto fault = both.finish()) return *fault;
  // Whoever has the store now may have cut it; the transaction finds out.
  if (is_whole || !is_ours) return std::nullopt;
  return store_error{store_error::kind::fatal,
                     place_ + ": row " + std::to_string(head_.last_row.value) +
                         ", which was confirmed, is not in the database any more: another server "
                         "took over without it, or the database was put back. Bring the former one "
                         "back, or restart with --restored-backup, which keeps every fencing "
                         "token rising"};
}

postgres_result<postgres_rows> postgres_writer::read(std::string_view sql,
                                                     const postgres_values& with) {
  if (auto fault = connect()) return postgres_error{std::move(*fault), "", false};
  auto read = db_->run(sql, with);
  const auto* lost = std::get_if<postgres_error>(&read);
  if (lost == nullptr || !lost->is_lost) return read;
  if (auto fault = connect()) return postgres_error{std::move(*fault), "", false};
  return db_->run(sql, with);
}

// ---- transactions

std::optional<store_error> postgres_writer::transact(const work& what) {
  is_unknown_ = false;
  const auto begun = steady::now();
  const auto retry_for = is_down_ ? milliseconds{0} : how_.retry_for;
  for (auto pause = first_pause;; pause = std::min(2 * pause, longest_pause)) {
    tried now = try_once(what);
    if (now.what == outcome::done) break;
    if (now.what == outcome::moved) return now.fault;
    if (now.what == outcome::refused && (!is_unknown_ || is_final(*now.fault))) return now.fault;
    if (steady::now() - begun >= (is_unknown_ ? how_.settle_for : retry_for)) {
      return is_unknown_ ? unsettled(*now.fault) : now.fault;
    }
    std::this_thread::sleep_for(pause);
  }
  if (!is_unknown_ || std::exchange(is_confirming_, true)) return std::nullopt;
  auto fault = confirm();
  is_confirming_ = false;
  return fault;
}

/// What was found in the log may not have reached the synchronous standby, if there is one: a later
/// commit that is confirmed vouches for it.
std::optional<store_error> postgres_writer::confirm() {
  const auto until = steady::now() + how_.settle_for;
  std::optional<store_error> fault;
  do {
    fault = transact(marked({}));
    if (!fault && !is_unknown_) return std::nullopt;
    if (fault && is_final(*fault)) return fault;
  } while (steady::now() < until);
  return unsettled(fault ? *fault
                         : store_error{store_error::kind::io,
                                       place_ + ": the synchronous standby confirms nothing"});
}

postgres_writer::tried postgres_writer::try_once(const work& what) {
  if (auto fault = connect()) {
    return {is_final(*fault) ? outcome::refused : outcome::passing, std::move(fault)};
  }
  tried now = send(what);
  if (now.what == outcome::met_key || now.what == outcome::moved) {
    return look_for(what, now.what, std::move(*now.fault));
  }
  return now;
}

postgres_writer::tried postgres_writer::send(const work& what) {
  bool is_committed = false;
  postgres_pipeline whole(*db_);
  whole.add("BEGIN");
  if (!what.durable) whole.add("SET LOCAL synchronous_commit TO off");
  const std::size_t epoch_at = whole.size();
  check_epoch(whole, how_.epoch);
  const std::size_t key_at = whole.size();
  what.add_key(whole);
  if (what.add_rest) what.add_rest(whole);
  whole.add("COMMIT", {}, [&is_committed](const postgres_rows& said) {
    is_committed = said.command() == "COMMIT";
  });
  db_->take_warned();
  const auto fault = whole.finish();
  if (!fault && is_committed) {
    // The server gave up waiting for its synchronous standby: it is durable on one of them only.
    is_unknown_ = db_->take_warned();
    return {};
  }
  // Nothing of a session that failed is used again, whatever state it is in.
  const int pid = db_->backend_pid();
  db_.reset();
  if (!fault) {
    return {outcome::passing,
            store_error{store_error::kind::io, place_ + ": the server rolled a commit back"}};
  }
  if (fault->is_lost) {
    former_pid_ = pid;
    is_unknown_ = true;
    return {outcome::unknown, *fault};
  }
  if (whole.answered() == epoch_at && fault->state == moved_epoch) {
    return {outcome::moved, deposed()};
  }
  if (whole.answered() == key_at && fault->state == "23505") return {outcome::met_key, *fault};
  return {may_pass(fault->state) ? outcome::passing : outcome::refused, *fault};
}

/// Its key was there, or the epoch has moved: then no transaction of ours is on its way any more,
/// and what can be read is what there is.
postgres_writer::tried postgres_writer::look_for(const work& what, outcome seen,
                                                 store_error fault) {
  if (seen == outcome::moved && !is_unknown_) return {seen, std::move(fault)};
  if (auto away = connect()) {
    return {is_final(*away) ? outcome::refused : outcome::passing, std::move(away)};
  }
  auto found = what.is_there(*db_);
  if (auto* failed = std::get_if<postgres_error>(&found)) {
    is_unknown_ = true;
    return {outcome::unknown, std::move(*failed)};
  }
  if (std::get<bool>(found)) {
    // The take-over was a later commit, and was confirmed.
    if (seen == outcome::moved) is_unknown_ = false;
    return {};
  }
  return {outcome::moved, deposed()};
}

postgres_writer::work postgres_writer::marked(std::function<void(postgres_pipeline&)> rest,
                                              bool durable) const {
  work made;
  const std::string mark = new_mark();
  made.add_key = [mark](postgres_pipeline& into) {
    into.add("WITH former AS (DELETE FROM mark WHERE id <> $1) INSERT INTO mark (id) VALUES ($1)",
             postgres_values().bytes(mark));
  };
  made.add_rest = std::move(rest);
  made.is_there = [mark](postgres_connection& in) -> postgres_result<bool> {
    auto read = in.run("SELECT 1 FROM mark WHERE id = $1", postgres_values().bytes(mark));
    if (auto* fault = std::get_if<postgres_error>(&read)) return *fault;
    return std::get<postgres_rows>(read).count() == 1;
  };
  made.durable = durable;
  return made;
}

// ---- commits

void postgres_writer::insert(postgres_pipeline& into,
                             const std::vector<actors::stored_batch>& pieces) const {
  std::vector<std::int64_t> first_rows;
  std::vector<std::int64_t> last_rows;
  std::vector<std::int64_t> formats;
  std::vector<std::string_view> boot_ids;
  std::vector<std::int64_t> boottimes;
  std::vector<std::int64_t> walls;
  std::vector<std::int64_t> times;
  std::vector<std::string_view> chains;
  std::vector<std::string_view> bodies;
  for (const actors::stored_batch& each : pieces) {
    first_rows.push_back(each.first_row.value);
    last_rows.push_back(each.last_row.value);
    formats.push_back(each.format);
    boot_ids.emplace_back(each.anchor.boot_id);
    boottimes.push_back(each.anchor.boottime_ms);
    walls.push_back(each.anchor.wall_ms);
    times.push_back(each.anchor.coordinator_time.ms);
    chains.push_back(bytes_of(each.chain));
    bodies.emplace_back(each.rows);
  }
  into.add(
      "INSERT INTO batch (first_row, last_row, format, epoch, boot_id, boottime_ms, wall_ms, "
      "coordinator_ms, chain, body) SELECT first_row, last_row, format, $10, boot_id, boottime_ms, "
      "wall_ms, coordinator_ms, chain, body FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], "
      "$4::text[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bytea[], $9::bytea[]) "
      "AS new (first_row, last_row, format, boot_id, boottime_ms, wall_ms, coordinator_ms, chain, "
      "body)",
      postgres_values()
          .integers(first_rows)
          .integers(last_rows)
          .integers(formats)
          .texts(boot_ids)
          .integers(boottimes)
          .integers(walls)
          .integers(times)
          .byte_texts(chains)
          .byte_texts(bodies)
          .integer(how_.epoch));
}

std::optional<store_error> postgres_writer::write(const std::vector<actors::stored_batch>& pieces,
                                                  const batches& of, const actors::log_head&) {
  const auto rest = [&, this](postgres_pipeline& into) {
    insert_policies(into, of);
    for (const actors::batch* each : of) write_dispatch_changes(into, each->dispatches);
    // With the rows of the restore the database is no backup any more.
    if (facts_.is_backup) write_backup_mark(into, false);
  };
  work what = marked(rest);
  if (!pieces.empty()) {
    what.add_key = [&, this](postgres_pipeline& into) { insert(into, pieces); };
    what.is_there = [&, this](postgres_connection& in) -> postgres_result<bool> {
      const auto& last = pieces.back();
      auto read = in.run("SELECT last_row, epoch, chain FROM batch WHERE first_row = $1",
                         postgres_values().integer(last.first_row.value));
      if (auto* fault = std::get_if<postgres_error>(&read)) return *fault;
      const auto& rows = std::get<postgres_rows>(read);
      return rows.count() == 1 && rows.integer(0, 0) == last.last_row.value &&
             rows.integer(0, 1) == how_.epoch && rows.bytes(0, 2) == bytes_of(last.chain);
    };
  }
  if (auto fault = transact(what)) return fault;
  facts_.is_backup = false;
  return std::nullopt;
}

// ---- checkpoints and cuts

std::optional<store_error> postgres_writer::take_from_sums(
    const std::vector<std::string_view>& tenants, const std::vector<std::string_view>& leases,
    store_facts& facts) {
  if (tenants.empty()) return std::nullopt;
  // Nobody else writes records, so that they are the same when the transaction begins.
  auto found = read(
      "SELECT check_value FROM unnest($1::bytea[], $2::bytea[]) AS named (t, l) "
      "JOIN record ON tenant = t AND lease = l",
      postgres_values().byte_texts(tenants).byte_texts(leases));
  if (auto* fault = std::get_if<postgres_error>(&found)) return *fault;
  const auto& rows = std::get<postgres_rows>(found);
  facts.record_count -= rows.count();
  for (int i = 0; i < rows.count(); ++i) {
    facts.record_sum -= static_cast<std::uint64_t>(rows.integer(i, 0));
  }
  return std::nullopt;
}

std::optional<store_error> postgres_writer::write_records(const actors::checkpoint_slice& what,
                                                          std::size_t begin, std::size_t end,
                                                          bool finishes, store_facts& facts) {
  const record_columns columns = columns_of(what, begin, end);
  if (auto fault = take_from_sums(columns.tenants, columns.leases, facts)) return fault;
  facts.record_count += static_cast<std::int64_t>(columns.checks.size());
  for (const std::int64_t each : columns.checks) {
    facts.record_sum += static_cast<std::uint64_t>(each);
  }
  std::vector<std::string_view> tenants;
  std::vector<std::string_view> leases;
  if (finishes) {
    for (const protocol::lease_key& each : forgotten_) {
      tenants.emplace_back(each.tenant.value);
      leases.emplace_back(each.lease.value);
    }
    if (auto fault = take_from_sums(tenants, leases, facts)) return fault;
  }
  // Until the last slice a lost transaction only means an older checkpoint: nobody waits for it.
  return transact(marked(
      [&](postgres_pipeline& into) {
        upsert_records(into, columns);
        if (!tenants.empty()) {
          into.add(
              "DELETE FROM record USING unnest($1::bytea[], $2::bytea[]) AS named (t, l) "
              "WHERE tenant = t AND lease = l",
              postgres_values().byte_texts(tenants).byte_texts(leases));
        }
        write_checkpoint_facts(into, facts);
      },
      finishes));
}

actors::store_result<std::int64_t> postgres_writer::delete_batches(row_number upto,
                                                                   store_facts& facts) {
  auto front = read(
      "SELECT last_row, coordinator_ms, chain FROM batch WHERE first_row <= $1 AND last_row <= $1 "
      "ORDER BY first_row LIMIT $2",
      postgres_values().integer(upto.value).integer(batches_cut_at_once));
  if (auto* fault = std::get_if<postgres_error>(&front)) return *fault;
  const auto& rows = std::get<postgres_rows>(front);
  const int count = rows.count();
  if (count == 0) return 0;
  if (rows.bytes(count - 1, 2).size() != facts.anchor.chain.size()) {
    return store_error{store_error::kind::corrupt,
                       place_ + ": the hash of a batch is damaged; the log is not cut behind it"};
  }
  facts.anchor = {{rows.integer(count - 1, 0)}, chain_of(rows.bytes(count - 1, 2))};
  facts.anchor_time.ms = rows.integer(count - 1, 1);
  facts.batches_cut += count;
  auto fault = transact(marked([&](postgres_pipeline& into) {
    into.add("DELETE FROM batch WHERE first_row <= $1",
             postgres_values().integer(facts.anchor.last_row.value));
    write_anchor_facts(into, facts);
  }));
  if (fault) return *fault;
  return count;
}

}  // namespace leasehold::storage
