#include "src/store/postgres_schema.hpp"

#include <chrono>
#include <cstring>
#include <span>
#include <thread>
#include <vector>

#include "src/store/batch_log.hpp"
#include "src/store/postgres_dispatch_rows.hpp"
#include "src/store/unfinished_copy.hpp"

namespace leasehold::storage {

namespace {

using actors::store_error;

/// How often it looks again while another process makes the tables.
constexpr int most_tries = 50;
constexpr std::chrono::milliseconds try_pause{100};

// Ids are bytes: they are compared as such, and PostgreSQL's text cannot hold each of them. What a
// batch holds is compressed by nobody: it is written once and read seldom.
constexpr std::string_view tables = R"(
  CREATE SCHEMA leasehold;
  CREATE TABLE leasehold.store (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    format bigint NOT NULL, store_id text NOT NULL, shards bigint NOT NULL,
    anchor_row bigint NOT NULL DEFAULT 0, anchor_chain bytea NOT NULL,
    anchor_ms bigint NOT NULL DEFAULT 0, batches_cut bigint NOT NULL DEFAULT 0,
    checkpoint_row bigint NOT NULL DEFAULT 0, record_count bigint NOT NULL DEFAULT 0,
    record_sum bigint NOT NULL DEFAULT 0, grants_from_ms bigint NOT NULL DEFAULT 0,
    is_backup boolean NOT NULL DEFAULT false);
  CREATE TABLE leasehold.floor (shard bigint PRIMARY KEY, generation bigint NOT NULL);
  CREATE TABLE leasehold.epoch (
    epoch bigint PRIMARY KEY, owner text NOT NULL, address text NOT NULL,
    renewals bigint NOT NULL, released boolean NOT NULL) WITH (fillfactor = 50);
  CREATE TABLE leasehold.batch (
    first_row bigint PRIMARY KEY, last_row bigint NOT NULL, format bigint NOT NULL,
    epoch bigint NOT NULL, boot_id text NOT NULL, boottime_ms bigint NOT NULL,
    wall_ms bigint NOT NULL, coordinator_ms bigint NOT NULL, chain bytea NOT NULL,
    body bytea NOT NULL);
  ALTER TABLE leasehold.batch ALTER COLUMN body SET STORAGE EXTERNAL;
  CREATE TABLE leasehold.mark (id bytea PRIMARY KEY);
  CREATE TABLE leasehold.record (
    tenant bytea NOT NULL, lease bytea NOT NULL, last_row bigint NOT NULL,
    check_value bigint NOT NULL, image bytea NOT NULL, PRIMARY KEY (tenant, lease))
    WITH (fillfactor = 80);
  CREATE TABLE leasehold.policy (id bigint PRIMARY KEY, text text NOT NULL);
  INSERT INTO leasehold.epoch VALUES (0, '', '', 0, true);
)";

store_error foreign(const postgres_connection& in, std::string_view why) {
  return {store_error::kind::foreign, in.place() + ": " + std::string(why)};
}

store_error corrupt(const postgres_connection& in, std::string_view why) {
  return {store_error::kind::corrupt,
          in.place() + ": " + std::string(why) + "; restore the database from a backup"};
}

enum class presence : std::uint8_t { none, foreign, ours };

actors::store_result<presence> look_for(postgres_connection& in) {
  auto found = in.run(
      "SELECT to_regnamespace('leasehold') IS NOT NULL, to_regclass('leasehold.store') IS NOT NULL "
      "AND to_regclass('leasehold.epoch') IS NOT NULL");
  if (auto* fault = std::get_if<postgres_error>(&found)) return *fault;
  const auto& rows = std::get<postgres_rows>(found);
  if (rows.boolean(0, 1)) return presence::ours;
  return rows.boolean(0, 0) ? presence::foreign : presence::none;
}

std::optional<store_error> check_format(postgres_connection& in) {
  auto found = in.run("SELECT format FROM leasehold.store");
  if (auto* fault = std::get_if<postgres_error>(&found)) return *fault;
  const auto& rows = std::get<postgres_rows>(found);
  if (rows.count() != 1) {
    return corrupt(in, "the store's own facts (table leasehold.store) are missing");
  }
  const std::int64_t format = rows.integer(0, 0);
  if (format == unfinished_version) return foreign(in, unfinished_copy);
  if (format <= postgres_format) return std::nullopt;
  return foreign(in, "the store was written by a newer version (format " + std::to_string(format) +
                         ", this one reads up to " + std::to_string(postgres_format) +
                         "); start that version, or restore a backup of this one");
}

/// Of a text in which semicolons stand between them alone.
void add_statements(postgres_pipeline& to, std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(';'), text.size());
    const auto one = text.substr(0, end);
    if (one.find_first_not_of(" \n") != std::string_view::npos) to.add_once(one);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

std::optional<postgres_error> make_tables(postgres_connection& in, std::int64_t shards) {
  const std::string id = new_store_id();
  postgres_pipeline whole(in);
  add_statements(whole, tables);
  add_statements(whole, postgres_dispatch_tables);
  const auto chain = genesis_chain(id);
  whole.add_once(
      "INSERT INTO leasehold.store (format, store_id, shards, anchor_chain) "
      "VALUES ($1, $2, $3, $4)",
      postgres_values().integer(postgres_format).text(id).integer(shards).bytes(bytes_of(chain)));
  return whole.finish();
}

/// Another process was faster: names of the system's tables are unique.
bool is_made_already(const postgres_error& fault) {
  return fault.state == "23505" || fault.state == "42P06" || fault.state == "42P07";
}

}  // namespace

actors::chain_hash chain_of(std::string_view bytes) {
  actors::chain_hash chain{};
  if (bytes.size() == chain.size()) std::memcpy(chain.data(), bytes.data(), bytes.size());
  return chain;
}

std::string_view bytes_of(const actors::chain_hash& chain) {
  return {reinterpret_cast<const char*>(chain.data()), chain.size()};
}

std::optional<store_error> prepare_schema(postgres_connection& in,
                                          std::optional<std::int64_t> shards) {
  for (int tries = 0; tries < most_tries; ++tries) {
    auto looked = look_for(in);
    if (auto* fault = std::get_if<store_error>(&looked)) return *fault;
    switch (std::get<presence>(looked)) {
      case presence::ours:
        return check_format(in);
      case presence::foreign:
        return foreign(in,
                       "the schema 'leasehold' of the database is of another program; name "
                       "another database");
      case presence::none:
        break;
    }
    if (!shards) {
      return foreign(in, "there is no Leasehold store in the database; name another database");
    }
    auto fault = make_tables(in, *shards);
    if (!fault) return std::nullopt;
    if (!is_made_already(*fault) && !may_pass(fault->state)) return *fault;
    std::this_thread::sleep_for(try_pause);
  }
  return store_error{store_error::kind::busy,
                     in.place() +
                         ": another process has been making the tables of the store for "
                         "too long; try again"};
}

actors::store_result<store_facts> read_facts(postgres_connection& from) {
  store_facts facts;
  bool whole = false;
  bool chained = false;
  postgres_pipeline both(from);
  both.add(
      "SELECT store_id, shards, anchor_row, anchor_chain, anchor_ms, batches_cut, checkpoint_row, "
      "record_count, record_sum, grants_from_ms, is_backup FROM store",
      {}, [&](const postgres_rows& rows) {
        if (rows.count() != 1) return;
        facts.store_id = rows.bytes(0, 0);
        facts.shards = rows.integer(0, 1);
        chained = rows.bytes(0, 3).size() == facts.anchor.chain.size();
        facts.anchor = {{rows.integer(0, 2)}, chain_of(rows.bytes(0, 3))};
        facts.anchor_time.ms = rows.integer(0, 4);
        facts.batches_cut = rows.integer(0, 5);
        facts.checkpoint.value = rows.integer(0, 6);
        facts.record_count = rows.integer(0, 7);
        facts.record_sum = static_cast<std::uint64_t>(rows.integer(0, 8));
        facts.state.grants_from.ms = rows.integer(0, 9);
        facts.is_backup = rows.boolean(0, 10);
        whole = true;
      });
  both.add("SELECT shard, generation FROM floor", {}, [&](const postgres_rows& rows) {
    for (int i = 0; i < rows.count(); ++i) {
      const auto shard = static_cast<std::size_t>(rows.integer(i, 0));
      if (shard < facts.state.floors.size()) facts.state.floors[shard].value = rows.integer(i, 1);
    }
  });
  if (auto fault = both.finish()) return *fault;
  if (!whole || facts.store_id.size() != 32 || facts.shards < 1 || !chained) {
    return corrupt(from, "the store's own facts (table leasehold.store) are damaged");
  }
  return facts;
}

actors::store_result<actors::log_head> read_head(postgres_connection& from,
                                                 const store_facts& facts) {
  auto found = from.run("SELECT last_row, chain FROM batch ORDER BY first_row DESC LIMIT 1");
  if (auto* fault = std::get_if<postgres_error>(&found)) return *fault;
  const auto& rows = std::get<postgres_rows>(found);
  if (rows.count() == 0) return facts.anchor;
  actors::log_head head{{rows.integer(0, 0)}, chain_of(rows.bytes(0, 1))};
  if (rows.bytes(0, 1).size() != head.chain.size()) {
    return corrupt(from, "the hash of the last batch is damaged");
  }
  return head;
}

void write_checkpoint_facts(postgres_pipeline& into, const store_facts& facts) {
  into.add(
      "UPDATE store SET checkpoint_row = $1, record_count = $2, record_sum = $3, "
      "grants_from_ms = $4",
      postgres_values()
          .integer(facts.checkpoint.value)
          .integer(facts.record_count)
          .integer(static_cast<std::int64_t>(facts.record_sum))
          .integer(facts.state.grants_from.ms));
  std::vector<std::int64_t> shards;
  std::vector<std::int64_t> generations;
  for (std::size_t shard = 0; shard < facts.state.floors.size(); ++shard) {
    if (facts.state.floors[shard].value == 0) continue;
    shards.push_back(static_cast<std::int64_t>(shard));
    generations.push_back(facts.state.floors[shard].value);
  }
  if (shards.empty()) return;
  into.add(
      "INSERT INTO floor (shard, generation) SELECT * FROM unnest($1::bigint[], $2::bigint[]) "
      "ON CONFLICT (shard) DO UPDATE SET generation = excluded.generation",
      postgres_values().integers(shards).integers(generations));
}

void write_anchor_facts(postgres_pipeline& into, const store_facts& facts) {
  into.add("UPDATE store SET anchor_row = $1, anchor_chain = $2, anchor_ms = $3, batches_cut = $4",
           postgres_values()
               .integer(facts.anchor.last_row.value)
               .bytes(bytes_of(facts.anchor.chain))
               .integer(facts.anchor_time.ms)
               .integer(facts.batches_cut));
}

void write_backup_mark(postgres_pipeline& into, bool is_backup) {
  into.add("UPDATE store SET is_backup = $1", postgres_values().boolean(is_backup));
}

void check_epoch(postgres_pipeline& into, std::int64_t epoch) {
  // An error is the only thing that ends a pipeline, so that an epoch that is not there is divided
  // by. A key share does not stand in the way of renewals, which leave the key as it is; whoever
  // takes the epoch changes it and waits for every transaction that has got here.
  into.add(
      "SELECT 1 / count(*) FROM (SELECT 1 FROM epoch WHERE epoch = $1 FOR KEY SHARE) AS still_ours",
      postgres_values().integer(epoch));
}

actors::store_result<std::string> find_unsafe_settings(postgres_connection& of) {
  auto found = of.run("SELECT current_setting('fsync'), current_setting('full_page_writes')");
  if (auto* fault = std::get_if<postgres_error>(&found)) return *fault;
  const auto& rows = std::get<postgres_rows>(found);
  std::string named;
  if (rows.bytes(0, 0) != "on") named = "fsync=off";
  if (rows.bytes(0, 1) != "on")
    named += named.empty() ? "full_page_writes=off" : " and full_page_writes=off";
  if (named.empty()) return std::string();
  return of.place() + ": the server runs with " + named +
         ": when its machine stops, confirmed commits are lost or the store is damaged; turn it on";
}

}  // namespace leasehold::storage
