#include "src/store/sqlite_store.hpp"

#include <cstring>
#include <system_error>
#include <utility>

#include "leasehold/protocol/record_image.hpp"
#include "src/store/batch_log.hpp"
#include "src/store/directory_lock.hpp"
#include "src/store/kept_head.hpp"
#include "src/store/log_check.hpp"
#include "src/store/read_pool.hpp"
#include "src/store/schema.hpp"
#include "src/store/sqlite_dispatch.hpp"
#include "src/store/sqlite_reader.hpp"
#include "src/store/sqlite_writer.hpp"
#include "src/store/stored_grant.hpp"
#include "src/store/wal_check.hpp"

namespace leasehold::storage {

namespace {

using actors::log_head;
using actors::recovered_head;
using actors::store_error;
using actors::stored_batch;
using protocol::row_number;

/// Batches per read of a start: about 4 MiB.
constexpr std::size_t batches_at_once = 64;

store_error damaged(const std::filesystem::path& directory, std::string_view what) {
  return {store_error::kind::corrupt,
          directory.string() + ": " + std::string(what) +
              "; the store is not used like this. 'leasehold verify --data " + directory.string() +
              "' names everything that is damaged; restore the directory from a backup"};
}

/// The dispatch tables beside the log of the coordinator.
class coordinator_dispatches final : public sqlite_dispatch_store {
 public:
  coordinator_dispatches(std::function<protocol::instant()> now, reader_pool& readers,
                         sqlite_writer& writer)
      : now_(std::move(now)), readers_(readers), writer_(writer) {}

  /// No read runs or begins any more.
  void stop() { reads_.stop(); }

  actors::store_result<protocol::instant> now() override {
    using result = actors::store_result<protocol::instant>;
    if (now_) return now_();
    return readers_.with<result>([](sqlite_reader& from) -> result {
      auto newest = read_newest_anchor(from.database());
      if (auto* fault = std::get_if<store_error>(&newest)) return *fault;
      return std::get<actors::clock_anchor>(newest).coordinator_time;
    });
  }

 protected:
  bool read(reading what) override {
    return reads_.submit([this, what = std::move(what)] {
      // A reader that cannot be opened is a fault, which is told once.
      const auto taken = readers_.with<actors::store_result<bool>>(
          [&what](sqlite_reader& from) -> actors::store_result<bool> {
            what(&from.database());
            return true;
          });
      if (const auto* fault = std::get_if<store_error>(&taken)) what(*fault);
    });
  }
  bool write(dispatch_turn what) override { return writer_.dispatch(std::move(what)); }

 private:
  std::function<protocol::instant()> now_;
  reader_pool& readers_;
  sqlite_writer& writer_;
  read_pool reads_{1, most_dispatch_calls};  ///< ends before the readers, which it uses
};

class sqlite_store final : public actors::store {
 public:
  sqlite_store(const sqlite_options& how, directory_lock lock, connection db, store_facts facts,
               log_head head)
      : directory_(how.directory),
        on_damage_(how.on_damage),
        lock_(std::move(lock)),
        facts_(facts),
        head_at_start_(head),
        readers_(directory_ / database_name),
        dispatches_(how.now, readers_, writer_),
        writer_(std::move(db), std::move(facts), head, how.directory,
                static_cast<int>(how.wal_bytes / database_page_bytes)) {}
  // A read's answer may ask for a write.
  ~sqlite_store() override { dispatches_.stop(); }
  sqlite_store(const sqlite_store&) = delete;
  sqlite_store& operator=(const sqlite_store&) = delete;

  actors::store_result<recovered_head> recover(
      const std::function<void(const actors::store_state&)>& on_state,
      const std::function<void(actors::checkpoint_entry&&)>& on_record,
      const std::function<void(protocol::policy_id, const protocol::policy&)>& on_policy,
      const std::function<void(stored_batch&&)>& on_batch) override {
    using result = actors::store_result<recovered_head>;
    return readers_.with<result>([&](sqlite_reader& from) -> result {
      on_state(facts_.state);
      if (auto fault = read_policies(from, on_policy)) return *fault;
      if (auto fault = read_records(from, on_record)) return *fault;
      recovered_head out{head_at_start_,  facts_.checkpoint, std::nullopt,
                         facts_.store_id, facts_.shards,     facts_.anchor.last_row};
      if (auto fault = read_tail(from, on_batch, out)) return *fault;
      if (on_damage_) check_.emplace(directory_, head_at_start_.last_row, on_damage_);
      return out;
    });
  }

  void commit(actors::batch what,
              std::function<void(actors::store_result<actors::committed>)> done) override {
    writer_.commit(std::move(what), std::move(done));
  }

  void checkpoint(actors::checkpoint_slice slice,
                  std::function<void(actors::store_result<bool>)> done) override {
    writer_.checkpoint(std::move(slice), std::move(done));
  }

  void read_grant(protocol::lease_key key, row_number newest,
                  std::function<void(actors::store_result<actors::stored_grant>)> done) override {
    using result = actors::store_result<actors::stored_grant>;
    // `done` is needed here, too, when the read does not find a place.
    const auto say = std::make_shared<decltype(done)>(std::move(done));
    const bool taken = lookups_.submit([this, key = std::move(key), newest, say] {
      (*say)(readers_.with<result>(
          [&](sqlite_reader& from) { return storage::read_grant(from, key, newest); }));
    });
    if (!taken) (*say)(store_error{store_error::kind::busy, "too many reads of grants wait"});
  }

  void read_requests(protocol::lease_key key, row_number newest, protocol::generation gen,
                     protocol::instant since,
                     std::function<void(actors::store_result<std::vector<protocol::past_request>>)>
                         done) override {
    using result = actors::store_result<std::vector<protocol::past_request>>;
    const auto say = std::make_shared<decltype(done)>(std::move(done));
    const bool taken = lookups_.submit([this, key = std::move(key), newest, gen, since, say] {
      (*say)(readers_.with<result>([&](sqlite_reader& from) {
        return storage::read_requests(from, key, newest, gen, since);
      }));
    });
    if (!taken) (*say)(store_error{store_error::kind::busy, "too many reads of requests wait"});
  }

  void find_row_before(protocol::instant at,
                       std::function<void(actors::store_result<row_number>)> done) override {
    using result = actors::store_result<row_number>;
    const auto say = std::make_shared<decltype(done)>(std::move(done));
    const bool taken = lookups_.submit([this, at, say] {
      (*say)(readers_.with<result>([&](sqlite_reader& from) { return from.row_before(at); }));
    });
    if (!taken) (*say)(store_error{store_error::kind::busy, "too many reads wait"});
  }

  void cut(row_number upto, std::function<void(actors::store_result<row_number>)> done) override {
    writer_.cut(upto, std::move(done));
  }

  actors::store_result<std::optional<protocol::policy>> find_policy(
      protocol::policy_id id) override {
    using result = actors::store_result<std::optional<protocol::policy>>;
    return readers_.with<result>([&](sqlite_reader& from) { return from.find_policy(id); });
  }

  actors::store_result<std::vector<protocol::stored_row>> rows_of_lease(
      const protocol::lease_key& key, row_number newest, std::size_t limit) override {
    using result = actors::store_result<std::vector<protocol::stored_row>>;
    return readers_.with<result>(
        [&](sqlite_reader& from) { return from.rows_of_lease(key, newest, limit); });
  }

  actors::store_result<std::vector<protocol::stored_row>> rows_from(row_number from,
                                                                    std::size_t limit) override {
    using result = actors::store_result<std::vector<protocol::stored_row>>;
    return readers_.with<result>(
        [&](sqlite_reader& reader) { return reader.rows_from(from, limit); });
  }

  actors::store_result<std::vector<stored_batch>> batches_from(row_number from,
                                                               std::size_t limit) override {
    using result = actors::store_result<std::vector<stored_batch>>;
    return readers_.with<result>(
        [&](sqlite_reader& reader) { return reader.batches_from(from, limit); });
  }

  actors::store_result<log_head> head() override { return writer_.head(); }
  actors::dispatch_store& dispatches() override { return dispatches_; }

 private:
  std::optional<store_error> read_policies(
      sqlite_reader& from,
      const std::function<void(protocol::policy_id, const protocol::policy&)>& on_policy) {
    std::optional<store_error> fault;
    auto failed = from.each_policy([&](protocol::policy_id id, std::optional<protocol::policy> p) {
      if (p && protocol::id_of(*p) == id) {
        on_policy(id, *p);
      } else if (!fault) {
        fault = damaged(directory_, "policy " + protocol::to_text(id) + " is not what was stored");
      }
    });
    return failed ? failed : fault;
  }

  std::optional<store_error> read_records(
      sqlite_reader& from, const std::function<void(actors::checkpoint_entry&&)>& on_record) {
    std::optional<store_error> fault;
    std::int64_t count = 0;
    std::uint64_t sum = 0;
    auto failed = from.each_record([&](const stored_record& r) {
      ++count;
      sum += r.check;
      auto image =
          record_check(r.key, r.image) == r.check ? protocol::decode_image(r.image) : std::nullopt;
      if (image && image->last_row == r.last_row) {
        on_record({r.key, std::move(*image)});
      } else if (!fault) {
        fault = damaged(directory_, "the record of lease '" + r.key.lease.value + "' of tenant '" +
                                        r.key.tenant.value + "' is not what was stored");
      }
    });
    if (failed) return failed;
    if (!fault && (count != facts_.record_count || sum != facts_.record_sum)) {
      fault = damaged(directory_, "records of the checkpoint are missing or of another time");
    }
    return fault;
  }

  std::optional<store_error> read_tail(sqlite_reader& from,
                                       const std::function<void(stored_batch&&)>& on_batch,
                                       recovered_head& out) {
    if (facts_.checkpoint > head_at_start_.last_row) {
      return damaged(directory_, "the log ends at row " +
                                     std::to_string(head_at_start_.last_row.value) +
                                     ", before the checkpoint's row " +
                                     std::to_string(facts_.checkpoint.value));
    }
    auto begun = begin_of_tail(from, out);
    if (auto* fault = std::get_if<store_error>(&begun)) return *fault;
    log_head at = std::get<log_head>(begun);
    while (at.last_row < head_at_start_.last_row) {
      auto read = from.batches_from({at.last_row.value + 1}, batches_at_once);
      if (auto* fault = std::get_if<store_error>(&read)) return *fault;
      auto& batches = std::get<std::vector<stored_batch>>(read);
      if (batches.empty()) {
        return damaged(directory_, "row " + std::to_string(at.last_row.value + 1) + " is missing");
      }
      for (stored_batch& each : batches) {
        if (auto broken = find_broken(at, each)) {
          return damaged(directory_,
                         "row " + std::to_string(broken->row.value) + ": " + broken->sentence);
        }
        at = {each.last_row, each.chain};
        out.anchor = each.anchor;
        on_batch(std::move(each));
      }
    }
    return std::nullopt;
  }

  /// The batch before the one that holds the first row after the checkpoint, or the log's anchor.
  actors::store_result<log_head> begin_of_tail(sqlite_reader& from, recovered_head& out) {
    auto holding = from.batches_from({facts_.checkpoint.value + 1}, 1);
    if (auto* fault = std::get_if<store_error>(&holding)) return *fault;
    const auto& found = std::get<std::vector<stored_batch>>(holding);
    const row_number first =
        found.empty() ? row_number{facts_.checkpoint.value + 1} : found.front().first_row;
    auto before = from.batch_before(first);
    if (auto* fault = std::get_if<store_error>(&before)) return *fault;
    const auto& last = std::get<std::optional<stored_batch>>(before);
    if (!last) return facts_.anchor;
    out.anchor = last->anchor;
    // What is older is checked in the background; the clock goes on from this one.
    auto older = from.batch_before(last->first_row);
    if (auto* fault = std::get_if<store_error>(&older)) return *fault;
    const auto& base = std::get<std::optional<stored_batch>>(older);
    const log_head behind = base ? log_head{base->last_row, base->chain} : facts_.anchor;
    if (const auto broken = find_broken(behind, *last)) {
      return damaged(directory_,
                     "row " + std::to_string(broken->row.value) + ": " + broken->sentence);
    }
    return log_head{last->last_row, last->chain};
  }

  std::filesystem::path directory_;
  std::function<void(std::string)> on_damage_;
  directory_lock lock_;
  store_facts facts_;
  log_head head_at_start_;
  reader_pool readers_;
  coordinator_dispatches dispatches_;  ///< the writer's turns ask it for the time
  sqlite_writer writer_;
  read_pool lookups_{1};  ///< ends before the readers, which it uses
  std::optional<log_check> check_;
};

store_error lost_end(const std::filesystem::path& directory, const log_head& head,
                     const log_head& kept) {
  return {store_error::kind::corrupt,
          directory.string() + ": the log ends at row " + std::to_string(head.last_row.value) +
              " and does not extend what it was at row " + std::to_string(kept.last_row.value) +
              " (file " + std::string(kept_head_name) +
              "): a file of the store is missing or was put back. Put all files back as they were; "
              "or accept the loss with --restored-backup, which keeps every fencing token rising"};
}

/// The log must reach where it reached when its head was kept, and say the same there.
std::optional<store_error> find_lost_end(const std::filesystem::path& directory, connection& db,
                                         const store_facts& facts, const log_head& head) {
  const auto kept = read_kept_head(directory).head;
  if (!kept || kept->last_row < facts.anchor.last_row) return std::nullopt;
  bool extends = *kept == facts.anchor;
  statement query = db.prepare(
      "SELECT chain, last_row FROM batch WHERE first_row <= ? ORDER BY first_row DESC LIMIT 1");
  if (query.bind(1, kept->last_row.value).step() == SQLITE_ROW) {
    const std::string_view chain = query.bytes(0);
    extends = query.integer(1) == kept->last_row.value && chain.size() == kept->chain.size() &&
              std::memcmp(chain.data(), kept->chain.data(), chain.size()) == 0;
  }
  if (extends) return std::nullopt;
  return lost_end(directory, head, *kept);
}

/// What can be said before SQLite opens a file, which may change what is there.
std::optional<store_error> find_lost_files(const sqlite_options& how) {
  const auto file = how.directory / database_name;
  if (auto fault = find_lost_database(file)) return fault;
  if (how.restored_backup) return std::nullopt;
  std::error_code missing;
  const auto bytes = std::filesystem::file_size(file, missing);
  const auto kept = read_kept_head(how.directory).head;
  if ((missing || bytes == 0) && kept && kept->last_row.value > 0) {
    return lost_end(how.directory, {}, *kept);
  }
  return find_lost_log(file);
}

/// The frames behind the damage would stay in the file, and be found again at the next start.
std::optional<store_error> accept_lost_log(connection& db) {
  const int code =
      sqlite3_wal_checkpoint_v2(db.raw(), nullptr, SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
  if (code == SQLITE_OK) return std::nullopt;
  return db.error(code, "copying the write-ahead log of");
}

/// A backup has no kept head, and a new store none yet.
void say_what_is_unguarded(const sqlite_options& how, const store_facts& facts,
                           const log_head& head) {
  if (!how.on_unguarded || head.last_row.value == 0) return;
  const auto kept = read_kept_head(how.directory);
  if (kept.head || (kept.is_missing && (facts.is_backup || how.restored_backup))) return;
  how.on_unguarded(kept.why_none);
}

std::optional<store_error> refuse_backup(const sqlite_options& how, connection& db) {
  if (how.restored_backup) return std::nullopt;
  const auto facts = read_facts(db);
  if (const auto* fault = std::get_if<store_error>(&facts)) return *fault;
  if (!std::get<store_facts>(facts).is_backup) return std::nullopt;
  return store_error{store_error::kind::foreign,
                     how.directory.string() +
                         " holds a backup: what was granted after it is unknown. Start with "
                         "--restored-backup to serve it"};
}

std::optional<store_error> make_directory(const std::filesystem::path& directory) {
  std::error_code failed;
  const bool made = std::filesystem::create_directories(directory, failed);
  if (!failed && made) {
    std::filesystem::permissions(directory, std::filesystem::perms::owner_all, failed);
  }
  if (!failed) return std::nullopt;
  return store_error{store_error::kind::io, "making " + directory.string() + ": " +
                                                failed.message() +
                                                "; name a data directory that can be written"};
}

}  // namespace

actors::store_result<std::unique_ptr<actors::store>> open_sqlite_store(const sqlite_options& how) {
  if (auto fault = make_directory(how.directory)) return *fault;
  auto locked = directory_lock::take(how.directory);
  if (auto* fault = std::get_if<store_error>(&locked)) return *fault;
  if (auto fault = find_lost_files(how)) return *fault;
  const auto file = how.directory / database_name;
  const bool lost_log = how.restored_backup && find_lost_log(file);
  auto opened = open_database(file, connection::access::read_write, how.shards,
                              [&how](connection& db) { return refuse_backup(how, db); });
  if (auto* fault = std::get_if<store_error>(&opened)) return *fault;
  auto& db = std::get<connection>(opened);
  if (lost_log) {
    if (auto fault = accept_lost_log(db)) return *fault;
  }
  db.wait_for_lock(how.lock_wait);
  auto facts = read_facts(db);
  if (auto* fault = std::get_if<store_error>(&facts)) return *fault;
  auto head = read_head(db, std::get<store_facts>(facts));
  if (auto* fault = std::get_if<store_error>(&head)) return *fault;
  if (!how.restored_backup) {
    if (auto fault = find_lost_end(how.directory, db, std::get<store_facts>(facts),
                                   std::get<log_head>(head))) {
      return *fault;
    }
  }
  if (auto fault = upgrade_tables(db)) return *fault;
  say_what_is_unguarded(how, std::get<store_facts>(facts), std::get<log_head>(head));
  return std::make_unique<sqlite_store>(how, std::move(std::get<directory_lock>(locked)),
                                        std::move(db), std::move(std::get<store_facts>(facts)),
                                        std::get<log_head>(head));
}

}  // namespace leasehold::storage
