// Writes what a release leaves to later ones: a data directory with every kind of row and record,
// the end of its log, and its rows as exported lines. Everything comes from seeds and a clock of
// its own, so that the same build writes the same rows.
//
//   make_upgrade_fixture DIRECTORY
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>

#include "src/store/evidence_json.hpp"
#include "src/store/sqlite_store.hpp"
#include "src/store/verify.hpp"
#include "tests/store/history.hpp"
#include "tests/store/store_conformance.hpp"
#include "tests/support/coordinator_rig.hpp"
#include "tests/support/waiting_store.hpp"

namespace leasehold::tests {
namespace {

namespace fs = std::filesystem;
using protocol::event_kind;

constexpr std::int64_t hour = 3'600'000;
constexpr protocol::instant history_begins{1'700'000'000'000};

std::unique_ptr<actors::store> open(const fs::path& directory) {
  return expect(storage::open_sqlite_store({directory, 64}));
}

/// A lock and a counted row: the rules know both, and no frame of the stream asks for them alone.
void write_lock(actors::store& to) {
  const auto key = key_of("lock.printer");
  const protocol::policy chosen;
  const protocol::instant now = history_begins + protocol::duration{hour};
  actors::batch what;
  what.groups.push_back(protocol::encode_policy_row(chosen, now));
  what.policies.emplace_back(protocol::id_of(chosen), chosen);
  const auto first = expect(to.head()).last_row.value + 2;
  protocol::record lock;
  lock.lease = key.lease;
  protocol::row_group rows(key, protocol::id_of(chosen), {}, now, {});
  protocol::event acquire;
  acquire.kind = event_kind::acquire;
  acquire.lease = key.lease;
  acquire.from = protocol::holder("printer/one");
  protocol::step(lock, chosen, acquire, now, rows);
  protocol::counted_frames refused;
  refused.gen = lock.gen;
  refused.kind = event_kind::renew;
  refused.decision = protocol::decision::rejected;
  refused.reason = protocol::reason::stale_generation;
  refused.number = 150;
  refused.first = {1};
  refused.last = {150};
  protocol::row_group counted(key, protocol::id_of(chosen), {first + rows.count() - 1}, {}, {});
  counted.count(refused, now, lock);
  what.rows = 1 + rows.count() + counted.count();
  what.groups.push_back(rows.take_bytes());
  what.groups.push_back(counted.take_bytes());
  what.anchor = {"boot-1", hour, now.ms, now};
  expect(commit(to, std::move(what)));
}

/// Random lives of some jobs, a start, one of them as it should be, one that is forgotten.
void write_history(const fs::path& directory) {
  const auto store = open(directory);
  history past(*store, 3);
  for (const char* name : {"a", "b", "c", "d"}) past.submit(name);
  past.wander(110);
  past.restart(120'000);
  past.work("steady");
  past.submit("once");
  protocol::event cancel;
  cancel.kind = event_kind::cancel;
  past.happen("once", cancel);
  past.forget("once");
  past.checkpoint();
  write_lock(*store);
}

/// One life of the coordinator on the directory; what the test does happens at `clock`.
template <class Life>
void live(const fs::path& directory, const std::shared_ptr<manual_clock>& clock, bool restored,
          const actors::actor_options& options, const Life& life) {
  coordinator_rig rig(std::make_shared<memory_store>(), options, clock, restored,
                      std::make_shared<waiting_store>(open(directory)));
  if (rig.start_error) {
    std::cerr << rig.start_error->sentence << '\n';
    std::exit(1);
  }
  life(rig);
}

void finish(coordinator_rig& rig, rig_worker& worker, const std::string& id) {
  submit(rig, id);
  const auto gen = job(rig, id)->state->gen.value;
  worker.ack(id, gen);
  worker.result(id, gen);
}

void write_lives(const fs::path& directory) {
  const auto clock = std::make_shared<manual_clock>();
  clock->set(history_begins + protocol::duration{2 * hour});
  live(directory, clock, false, {}, [&](coordinator_rig& rig) {
    rig_worker worker(rig, "w");
    worker.credit(8);
    finish(rig, worker, "done");
    // Revoked and expired with work unproven, and granted again.
    for (const char* id : {"revoked", "lost"}) {
      submit(rig, id);
      worker.ack(id, 1);
      worker.progress(id, 1, 1, "half");
    }
    protocol::event revoke;
    revoke.kind = event_kind::revoke;
    operate(rig, "revoked", revoke);
    worker.credit(0);
    rig.advance(40'000);
    // Cancelled with work unproven, and nobody reports.
    protocol::event cancel;
    cancel.kind = event_kind::cancel;
    operate(rig, "lost", cancel);
    rig.advance(70'000);
    worker.credit(8);
    submit(rig, "carried");
    worker.ack("carried", 1);
    // Offered to a session that is gone before the offer reaches it.
    worker.disconnect();
    submit(rig, "waiting");
    rig.checkpoint();
  });
  // Away for so long that the lease has less left than the grace of a restart.
  clock->set(clock->now() + protocol::duration{27'000});
  live(directory, clock, false, {}, [&](coordinator_rig& rig) { rig.advance(1'000); });
  live(directory, clock, true, {}, [&](coordinator_rig& rig) {
    rig.advance(hour);
    rig.checkpoint();
  });
  actors::actor_options short_memory;
  short_memory.retention = {hour};
  short_memory.forget_after = {hour};
  short_memory.retention_check = {1'000};
  clock->set(clock->now() + protocol::duration{3 * hour});
  live(directory, clock, false, short_memory, [&](coordinator_rig& rig) {
    rig.checkpoint();
    rig.advance(5'000);
  });
}

/// The front of the log goes; what comes then is left as it is, in the middle of its life.
void write_end(const fs::path& directory) {
  const auto clock = std::make_shared<manual_clock>();
  clock->set(history_begins + protocol::duration{7 * hour});
  actors::actor_options retention;
  retention.retention = {hour / 2};
  live(directory, clock, false, retention, [&](coordinator_rig& rig) {
    rig.checkpoint();
    rig.cut_log();
    rig_worker worker(rig, "w");
    worker.credit(30);
    finish(rig, worker, "last");
    submit(rig, "active");
    const auto gen = job(rig, "active")->state->gen.value;
    worker.ack("active", gen);
    worker.renew("active", gen, 1);
    submit(rig, "early");
    if (job(rig, "active")->state->state != protocol::lease_state::active) {
      std::cerr << "the job 'active' was not granted: no lease would be under way\n";
      std::exit(1);
    }
    worker.renew("early", job(rig, "early")->state->gen.value, 1);
    rig.checkpoint();
    submit(rig, "behind-the-checkpoint");
  });
}

struct export_of_log {
  std::set<event_kind> kinds;
  std::int64_t rows = 0;
};

/// Leaves the database in one file.
void fold_in(const fs::path& directory) {
  sqlite3* database = nullptr;
  const auto file = (directory / "leasehold.db").string();
  if (sqlite3_open(file.c_str(), &database) != SQLITE_OK ||
      sqlite3_exec(database, "PRAGMA wal_checkpoint(TRUNCATE)", nullptr, nullptr, nullptr) !=
          SQLITE_OK) {
    std::cerr << file << ": " << sqlite3_errmsg(database) << '\n';
    std::exit(1);
  }
  sqlite3_close(database);
  for (const char* beside : {"leasehold.db-wal", "leasehold.db-shm", "lock"}) {
    fs::remove(directory / beside);
  }
}

/// As `leasehold export` writes them: every row that is about a lease.
export_of_log write_lines(const fs::path& directory, const fs::path& to) {
  export_of_log written;
  std::ofstream out(to, std::ios::binary);
  protocol::fold folded;
  const auto store = open(directory);
  for (const auto& row : expect(store->rows_from({1}, 1'000'000))) {
    if (const auto wrong = folded.feed(row)) std::cerr << wrong->sentence << '\n';
    const auto* image = folded.find(row.key);
    std::string line;
    storage::append_evidence_line(line, row, image ? image->state : protocol::record{},
                                  folded.deferred_row(), folded.policy_of(row.policy));
    written.kinds.insert(row.input.kind);
    ++written.rows;
    out << line;
  }
  return written;
}

int make(const fs::path& to) {
  fs::create_directories(to);
  const auto directory = to / "store";
  write_history(directory);
  write_lives(directory);
  auto exported = write_lines(directory, to / "rows.jsonl");
  write_end(directory);
  std::ofstream(to / "head") << storage::to_text(expect(storage::head_of_directory(directory)))
                             << '\n';
  for (const auto& row : expect(open(directory)->rows_from({1}, 1'000'000))) {
    exported.kinds.insert(row.input.kind);
  }
  fold_in(directory);
  std::cout << exported.rows << " rows";
  for (int kind = 1; kind <= static_cast<int>(event_kind::restore); ++kind) {
    const auto each = static_cast<event_kind>(kind);
    if (!protocol::word(each).empty() && !exported.kinds.contains(each)) {
      std::cout << ", no " << protocol::word(each);
    }
  }
  std::cout << '\n';
  return 0;
}

}  // namespace
}  // namespace leasehold::tests

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: make_upgrade_fixture DIRECTORY\n";
    return 2;
  }
  return leasehold::tests::make(argv[1]);
}
