#include "src/store/schema.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

#include "src/store/batch_log.hpp"
#include "src/store/sqlite_dispatch_rows.hpp"
#include "src/store/unfinished_copy.hpp"

namespace leasehold::storage {

namespace {

using actors::store_error;

/// "LSHD": the application id in the header of the file.
constexpr std::int64_t application_id = 0x4c534844;

// The body stands last, so that a reader of ranges and hashes does not page through it.
constexpr const char* tables = R"(
  PRAGMA application_id = 1280526404;
  PRAGMA user_version = 2;
  CREATE TABLE meta (key TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;
  CREATE TABLE batch (
    first_row INTEGER PRIMARY KEY, last_row INTEGER NOT NULL, format INTEGER NOT NULL,
    boot_id TEXT NOT NULL, boottime_ms INTEGER NOT NULL, wall_ms INTEGER NOT NULL,
    coordinator_ms INTEGER NOT NULL, chain BLOB NOT NULL, body BLOB NOT NULL);
  CREATE TABLE record (
    tenant TEXT NOT NULL, lease TEXT NOT NULL, last_row INTEGER NOT NULL,
    check_value INTEGER NOT NULL, image BLOB NOT NULL, PRIMARY KEY (tenant, lease)) WITHOUT ROWID;
  CREATE TABLE policy (id INTEGER PRIMARY KEY, text TEXT NOT NULL);
  CREATE TABLE floor (shard INTEGER PRIMARY KEY, generation INTEGER NOT NULL);
)";
static_assert(application_id == 1280526404 && schema_version == 2);

store_error foreign(const std::filesystem::path& file, std::string_view why) {
  return {store_error::kind::foreign, file.string() + " " + std::string(why)};
}

actors::store_result<std::int64_t> read_number(connection& from, std::string_view sql) {
  statement query = from.prepare(sql);
  const int code = query.step();
  if (code != SQLITE_ROW) return from.last_error("reading");
  return query.integer(0);
}

std::optional<store_error> put_fact(connection& to, std::string_view key, std::int64_t value) {
  statement put = to.prepare("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)");
  if (put.prepared() && put.bind_text(1, key).bind(2, value).run() == SQLITE_DONE) return {};
  return to.last_error("writing");
}

std::optional<store_error> put_fact(connection& to, std::string_view key, std::string_view value) {
  statement put = to.prepare("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)");
  if (put.prepared() && put.bind_text(1, key).bind_text(2, value).run() == SQLITE_DONE) return {};
  return to.last_error("writing");
}

std::optional<store_error> create_tables(connection& in, std::int64_t shards) {
  transaction whole(in);
  if (auto fault = whole.begin_writing()) return fault;
  if (auto fault = in.execute(tables, "making the tables of")) return fault;
  if (auto fault = create_dispatch_tables(in)) return fault;
  const std::string id = new_store_id();
  if (auto fault = put_fact(in, "store_id", std::string_view(id))) return fault;
  if (auto fault = put_fact(in, "shards", shards)) return fault;
  store_facts nothing;
  nothing.anchor.chain = genesis_chain(id);
  if (auto fault = write_anchor_facts(in, nothing)) return fault;
  if (auto fault = write_checkpoint_facts(in, nothing)) return fault;
  return whole.commit();
}

std::optional<store_error> prepare_writing(connection& db) {
  // Pages of 16 KiB: the log is made of large bodies. SQLite's own checkpoints are off, because
  // they pass over a failed fsync; the writer runs them and looks at the result.
  return db.execute(
      "PRAGMA page_size = 16384; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
      "PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = 67108864;"
      "PRAGMA cache_size = -16384; PRAGMA temp_store = MEMORY;",
      "preparing");
}

/// The file is made by us, so that nobody else reads what is in it; SQLite gives its side files the
/// same rights.
std::optional<store_error> make_private_file(const std::filesystem::path& file) {
  const int descriptor = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor < 0) {
    return store_error{store_error::kind::io, "opening " + file.string() + ": " +
                                                  std::generic_category().message(errno) +
                                                  "; the data directory must be writable"};
  }
  ::close(descriptor);
  return std::nullopt;
}

std::optional<store_error> check_identity(connection& db, const std::filesystem::path& file) {
  const auto id = read_number(db, "PRAGMA application_id");
  if (const auto* fault = std::get_if<store_error>(&id)) return *fault;
  if (std::get<std::int64_t>(id) != application_id) {
    return foreign(file, "is the database of another program; name another data directory");
  }
  const auto version = read_number(db, "PRAGMA user_version");
  if (const auto* fault = std::get_if<store_error>(&version)) return *fault;
  if (std::get<std::int64_t>(version) == unfinished_version) {
    return foreign(file.parent_path(), unfinished_copy);
  }
  if (std::get<std::int64_t>(version) > schema_version) {
    return foreign(file, "was written by a newer version (schema " +
                             std::to_string(std::get<std::int64_t>(version)) +
                             ", this one reads up to " + std::to_string(schema_version) +
                             "); start that version, or restore a backup of this one");
  }
  return std::nullopt;
}

}  // namespace

std::optional<store_error> find_foreign(const std::filesystem::path& file) {
  static constexpr std::string_view magic("SQLite format 3\0", 16);
  std::ifstream in(file, std::ios::binary);
  std::string head(magic.size(), '\0');
  in.read(head.data(), static_cast<std::streamsize>(head.size()));
  if (in.gcount() == 0) return std::nullopt;
  if (head == magic) return std::nullopt;
  // Power went while the first pages were written: all of them are in the write-ahead log, or
  // SQLite refuses the file.
  const bool whole = in.gcount() == static_cast<std::streamsize>(magic.size());
  if (whole && head.find_first_not_of('\0') == std::string::npos) return std::nullopt;
  return foreign(file, "is not a Leasehold store; name another data directory, or move the file");
}

actors::store_result<connection> open_database(
    const std::filesystem::path& file, connection::access how,
    std::optional<std::int64_t> create_with_shards,
    const std::function<std::optional<store_error>(connection&)>& refuse) {
  if (auto fault = find_foreign(file)) return *fault;
  if (create_with_shards) {
    if (auto fault = make_private_file(file)) return *fault;
  }
  auto opened = connection::open(file, how);
  if (std::holds_alternative<store_error>(opened)) return opened;
  auto& db = std::get<connection>(opened);
  const auto tables_there = read_number(db, "SELECT count(*) FROM sqlite_master");
  if (const auto* fault = std::get_if<store_error>(&tables_there)) return *fault;
  const bool empty = std::get<std::int64_t>(tables_there) == 0;
  if (!empty || !create_with_shards) {
    if (auto fault = check_identity(db, file)) return *fault;
  }
  if (!empty && refuse) {
    if (auto fault = refuse(db)) return *fault;
  }
  if (how == connection::access::read_write) {
    if (auto fault = prepare_writing(db)) return *fault;
  }
  if (empty && create_with_shards) {
    if (auto fault = create_tables(db, *create_with_shards)) return *fault;
    // The file itself then says what it is, also when its write-ahead log gets lost.
    const int code =
        sqlite3_wal_checkpoint_v2(db.raw(), nullptr, SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
    if (code != SQLITE_OK && code != SQLITE_BUSY) {
      return db.error(code, "copying the write-ahead log of");
    }
  }
  return opened;
}

namespace {

/// Version 2 added the tables of cancellation dispatch.
std::optional<store_error> upgrade_from_1(connection& db) {
  transaction whole(db);
  if (auto fault = whole.begin_writing()) return fault;
  if (auto fault = create_dispatch_tables(db)) return fault;
  if (auto fault = db.execute("PRAGMA user_version = 2", "upgrading")) return fault;
  return whole.commit();
}

std::optional<store_error> read_floors(connection& from, actors::store_state& into) {
  statement query = from.prepare("SELECT shard, generation FROM floor");
  if (!query.prepared()) return from.last_error("reading the floors of");
  int code = query.step();
  for (; code == SQLITE_ROW; code = query.step()) {
    const auto shard = static_cast<std::size_t>(query.integer(0));
    if (shard < into.floors.size()) into.floors[shard].value = query.integer(1);
  }
  if (code != SQLITE_DONE) return from.error(code, "reading the floors of");
  return std::nullopt;
}

std::optional<store_error> write_floors(connection& to, const actors::store_state& state) {
  statement put = to.prepare("INSERT OR REPLACE INTO floor (shard, generation) VALUES (?, ?)");
  for (std::size_t shard = 0; shard < state.floors.size(); ++shard) {
    if (state.floors[shard].value == 0) continue;
    const int code =
        put.bind(1, static_cast<std::int64_t>(shard)).bind(2, state.floors[shard].value).run();
    if (code != SQLITE_DONE) return to.error(code, "writing a floor to");
  }
  return std::nullopt;
}

}  // namespace

actors::store_result<connection> open_beside(const std::filesystem::path& file) {
  std::error_code failed;
  if (!std::filesystem::exists(file, failed)) {
    return foreign(file, "is not there; name the data directory of a leaseholdd that was started");
  }
  auto opened = connection::open(file, connection::access::write_present);
  if (std::holds_alternative<store_error>(opened)) return opened;
  auto& db = std::get<connection>(opened);
  if (auto fault = check_identity(db, file)) return *fault;
  const auto version = read_number(db, "PRAGMA user_version");
  if (const auto* fault = std::get_if<store_error>(&version)) return *fault;
  if (std::get<std::int64_t>(version) < schema_version) {
    return foreign(
        file,
        "is of an older version and has no dispatch tables; start the leaseholdd of this "
        "version on it once");
  }
  if (auto fault = db.execute("PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0;"
                              "PRAGMA journal_size_limit = 67108864; PRAGMA temp_store = MEMORY;",
                              "preparing")) {
    return *fault;
  }
  return opened;
}

std::optional<store_error> upgrade_tables(connection& db) {
  const auto version = read_number(db, "PRAGMA user_version");
  if (const auto* fault = std::get_if<store_error>(&version)) return *fault;
  return std::get<std::int64_t>(version) == 1 ? upgrade_from_1(db) : std::nullopt;
}

actors::store_result<store_facts> read_facts(connection& from) {
  statement query = from.prepare("SELECT key, value FROM meta");
  if (!query.prepared()) return from.last_error("reading");
  store_facts facts;
  bool chained = false;
  int code = query.step();
  for (; code == SQLITE_ROW; code = query.step()) {
    const std::string_view key = query.bytes(0);
    if (key == "store_id") facts.store_id = query.bytes(1);
    if (key == "shards") facts.shards = query.integer(1);
    if (key == "anchor_row") facts.anchor.last_row.value = query.integer(1);
    if (key == "checkpoint_row") facts.checkpoint.value = query.integer(1);
    if (key == "anchor_ms") facts.anchor_time.ms = query.integer(1);
    if (key == "batches_cut") facts.batches_cut = query.integer(1);
    if (key == "grants_from_ms") facts.state.grants_from.ms = query.integer(1);
    if (key == "is_backup") facts.is_backup = query.integer(1) != 0;
    if (key == "record_count") facts.record_count = query.integer(1);
    if (key == "record_sum") facts.record_sum = static_cast<std::uint64_t>(query.integer(1));
    if (key == "anchor_chain") {
      const auto chain = chain_from_hex(query.bytes(1));
      chained = chain.has_value();
      if (chain) facts.anchor.chain = *chain;
    }
  }
  if (code != SQLITE_DONE) return from.error(code, "reading");
  if (auto fault = read_floors(from, facts.state)) return *fault;
  if (facts.store_id.size() != 32 || facts.shards < 1 || !chained) {
    return store_error{store_error::kind::corrupt,
                       from.file() +
                           ": the store's own facts (table meta) are damaged; restore "
                           "the directory from a backup"};
  }
  return facts;
}

std::optional<store_error> write_checkpoint_facts(connection& to, const store_facts& facts) {
  if (auto fault = put_fact(to, "checkpoint_row", facts.checkpoint.value)) return fault;
  if (auto fault = put_fact(to, "record_count", facts.record_count)) return fault;
  if (auto fault = put_fact(to, "grants_from_ms", facts.state.grants_from.ms)) return fault;
  if (auto fault = write_floors(to, facts.state)) return fault;
  return put_fact(to, "record_sum", static_cast<std::int64_t>(facts.record_sum));
}

std::optional<store_error> write_anchor_facts(connection& to, const store_facts& facts) {
  const std::string chain = to_hex(facts.anchor.chain);
  if (auto fault = put_fact(to, "anchor_row", facts.anchor.last_row.value)) return fault;
  if (auto fault = put_fact(to, "anchor_chain", std::string_view(chain))) return fault;
  if (auto fault = put_fact(to, "anchor_ms", facts.anchor_time.ms)) return fault;
  return put_fact(to, "batches_cut", facts.batches_cut);
}

std::optional<store_error> write_backup_mark(connection& to, bool is_backup) {
  return put_fact(to, "is_backup", std::int64_t{is_backup ? 1 : 0});
}

actors::store_result<actors::log_head> read_head(connection& from, const store_facts& facts) {
  statement query =
      from.prepare("SELECT last_row, chain FROM batch ORDER BY first_row DESC LIMIT 1");
  const int code = query.step();
  if (code == SQLITE_DONE) return facts.anchor;
  if (code != SQLITE_ROW) return from.last_error("reading the end of the log in");
  actors::log_head head{{query.integer(0)}, {}};
  const std::string_view chain = query.bytes(1);
  if (chain.size() != head.chain.size()) {
    return store_error{store_error::kind::corrupt,
                       from.file() +
                           ": the hash of the last batch is damaged; restore the "
                           "directory from a backup"};
  }
  std::memcpy(head.chain.data(), chain.data(), chain.size());
  return head;
}

actors::store_result<actors::clock_anchor> read_newest_anchor(connection& from) {
  statement query = from.prepare(
      "SELECT boot_id, boottime_ms, wall_ms, coordinator_ms FROM batch "
      "ORDER BY first_row DESC LIMIT 1");
  const int code = query.step();
  if (code == SQLITE_DONE) return actors::clock_anchor{};
  if (code != SQLITE_ROW) return from.last_error("reading the end of the log in");
  return actors::clock_anchor{
      std::string(query.bytes(0)), query.integer(1), query.integer(2), {query.integer(3)}};
}

}  // namespace leasehold::storage
