#include "src/store/verify.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <boost/json.hpp>
#include <filesystem>

#include "src/store/kept_head.hpp"
#include "src/store/schema.hpp"
#include "src/store/sqlite_reader.hpp"
#include "src/store/sqlite_store.hpp"
#include "tests/store/history.hpp"
#include "tests/store/store_conformance.hpp"
#include "tests/support/memory_store.hpp"
#include "tests/support/temporary_directory.hpp"

namespace leasehold::tests {
namespace {

using protocol::row_number;
using protocol::stored_row;
namespace fs = std::filesystem;

/// The log of a store as rows, changed and written back by somebody who can also compute every
/// hash.
class forged_log {
 public:
  explicit forged_log(const fs::path& directory) : directory_(directory) {
    fs::remove(directory_ / storage::kept_head_name);  // as a forger would
    auto store = expect(storage::open_sqlite_store({directory_, 64}));
    rows = expect(store->rows_from({1}, 1'000'000));
    store_id_ = recover(*store).head.store_id;
  }

  /// `sealed`: hashes and checks are made to fit; else they stay what they were.
  void write(bool sealed) {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open((directory_ / storage::database_name).c_str(), &db), SQLITE_OK);
    if (sealed) {
      write_anew(db);
    } else {
      patch(db);
    }
    sqlite3_close(db);
  }

  std::vector<stored_row> rows;
  /// The row that write(false) changes.
  row_number changed;

 private:
  void write_anew(sqlite3* db) {
    actors::batch what = batch_of({});
    for (const auto& r : rows) {
      what.groups.push_back(protocol::encode_row(r));
      ++what.rows;
    }
    actors::log_head head{{0}, storage::genesis_chain(store_id_)};
    const auto pieces = storage::cut_pieces({&what}, head);
    sqlite3_exec(db, "DELETE FROM batch", nullptr, nullptr, nullptr);
    for (const auto& piece : *pieces) put(db, piece);
  }

  /// Re-encodes one row in its batch, its old check in front, as an editor of the file would.
  void patch(sqlite3* db) {
    storage::sqlite_reader reader(std::get<storage::connection>(storage::connection::open(
        directory_ / storage::database_name, storage::connection::access::read_only)));
    auto batch = expect(reader.batches_from(changed, 1)).front();
    std::string body;
    std::int64_t number = batch.first_row.value;
    for (std::size_t at = 0; at < batch.rows.size(); ++number) {
      const auto framed = protocol::read_frame(batch.rows, at);
      std::string bytes = batch.rows.substr(at, framed->end - at);
      if (number == changed.value) {
        const std::string check = batch.rows.substr(framed->check_at, 4);
        bytes = protocol::encode_row(rows[static_cast<std::size_t>(number) - 1]);
        bytes.replace(protocol::read_frame(bytes, 0)->check_at, 4, check);
      }
      body += bytes;
      at = framed->end;
    }
    batch.rows = body;
    put(db, batch);
  }

  static void put(sqlite3* db, const actors::stored_batch& piece) {
    storage::statement insert(
        db,
        "INSERT OR REPLACE INTO batch (first_row, last_row, format, boot_id, boottime_ms, "
        "wall_ms, coordinator_ms, chain, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)");
    insert.bind(1, piece.first_row.value).bind(2, piece.last_row.value).bind(3, piece.format);
    insert.bind_text(4, piece.anchor.boot_id).bind(5, piece.anchor.boottime_ms);
    insert.bind(6, piece.anchor.wall_ms).bind(7, piece.anchor.coordinator_time.ms);
    insert.bind_blob(8, {reinterpret_cast<const char*>(piece.chain.data()), piece.chain.size()});
    EXPECT_EQ(insert.bind_blob(9, piece.rows).run(), SQLITE_DONE);
  }

  fs::path directory_;
  std::string store_id_;
};

/// A store with the history of five leases, closed, and what its head was.
struct Verify : ::testing::Test {
  Verify() {
    memory_store draft;
    history past(draft, 5);
    for (const char* name : {"a", "b", "c", "d"}) past.submit(name);
    past.wander(120);
    past.work("steady");
    actors::checkpoint_slice slice;
    for (const auto& [key, image] : past.images()) slice.changed.push_back({key, image});
    slice.upto = past.last_row();
    slice.last = true;
    past.restart(400);
    past.wander(60);
    auto store = expect(storage::open_sqlite_store({directory.path(), 64}));
    copy(draft.all_rows(), *store);
    expect(checkpoint(*store, std::move(slice)));
    head = expect(store->head());
  }

  /// Writes rows in batches of thirty.
  static void copy(const std::vector<stored_row>& rows, actors::store& to) {
    actors::batch what = batch_of({});
    for (const stored_row& r : rows) {
      what.groups.push_back(protocol::encode_row(r));
      ++what.rows;
      if (r.input.kind == protocol::event_kind::policy) {
        what.policies.emplace_back(r.policy, *protocol::policy_from_text(r.attachment));
      }
      if (what.rows == 30 || &r == &rows.back()) {
        expect(commit(to, std::exchange(what, batch_of({}))));
      }
    }
  }

  storage::verify_report verify(bool with_head = false) {
    storage::verify_options how;
    if (with_head) how.head = head;
    return expect(storage::verify_directory(directory.path(), how));
  }

  /// An accepted renew in the middle of the history.
  static stored_row& find_renew(forged_log& log) {
    for (stored_row& r : log.rows) {
      const bool renewed = r.answer.reason == protocol::reason::renewed;
      if (renewed && r.key == key_of("steady") && r.input.seq.value == 3) return r;
    }
    ADD_FAILURE() << "the history has no such row";
    return log.rows.front();
  }

  temporary_directory directory;
  actors::log_head head;
};

TEST_F(Verify, AnUntouchedStoreIsProvenAndCounted) {
  const auto report = verify(true);
  for (const auto& each : report.problems) {
    ADD_FAILURE() << each.row.value << " " << each.column << ": " << each.sentence;
  }
  EXPECT_TRUE(report.proven());
  EXPECT_EQ(report.head, head);
  EXPECT_EQ(report.rows, head.last_row.value);
  EXPECT_EQ(report.leases, 5);
  EXPECT_EQ(report.records, 5);
  EXPECT_EQ(report.policies, 5);
}

TEST_F(Verify, ItRunsWhileTheCoordinatorWrites) {
  auto store = expect(storage::open_sqlite_store({directory.path(), 64}));
  expect(commit(*store, batch_of({})));
  EXPECT_TRUE(verify(true).proven());
  EXPECT_EQ(expect(storage::head_of_directory(directory.path())), head);
}

TEST_F(Verify, ADirectoryWithoutAStoreIsRefused) {
  const auto result = storage::verify_directory(directory.path() / "none", {});
  EXPECT_TRUE(std::holds_alternative<actors::store_error>(result));
  EXPECT_FALSE(fs::exists(directory.path() / "none"));
}

TEST_F(Verify, HeadsAreReadBackFromTheirText) {
  EXPECT_EQ(storage::head_from_text(storage::to_text(head)), head);
  for (const char* text : {"", "12", "12:", ":00", "x:00", "12:abc"}) {
    EXPECT_FALSE(storage::head_from_text(text)) << text;
  }
}

/// One way to change one row.
struct tampering {
  const char* name;
  void (*change)(stored_row&);
};

std::ostream& operator<<(std::ostream& out, const tampering& t) { return out << t.name; }

constexpr tampering columns_of_a_row[] = {
    {"prev_row", [](stored_row& r) { r.prev_row.value += 1; }},
    {"tenant", [](stored_row& r) { r.key.tenant.value += "x"; }},
    {"lease_id", [](stored_row& r) { r.key.lease.value += "x"; }},
    {"policy", [](stored_row& r) { r.policy.value ^= 1; }},
    {"at", [](stored_row& r) { r.at.ms += 1; }},
    {"ingress_at", [](stored_row& r) { r.ingress_at.ms += 1; }},
    {"fired_at", [](stored_row& r) { r.fired_at.ms += 1; }},
    {"event", [](stored_row& r) { r.input.kind = protocol::event_kind::cancel_ack; }},
    {"frame_generation", [](stored_row& r) { r.input.gen.value += 1; }},
    {"frame_holder", [](stored_row& r) { r.input.from.value += "x"; }},
    {"frame_sequence", [](stored_row& r) { r.input.seq.value += 1; }},
    {"sent_at", [](stored_row& r) { r.input.sent_at.ms += 1; }},
    {"frame_value", [](stored_row& r) { r.input.value += "x"; }},
    {"frame_outcome", [](stored_row& r) { r.input.ending = protocol::outcome::failed; }},
    {"frame_detail", [](stored_row& r) { r.input.detail += "x"; }},
    {"frame_retryable", [](stored_row& r) { r.input.retryable = !r.input.retryable; }},
    {"force", [](stored_row& r) { r.input.force = !r.input.force; }},
    {"request_id", [](stored_row& r) { r.input.request.value += "x"; }},
    {"frame_id", [](stored_row& r) { r.input.frame_id += 1; }},
    {"session_epoch", [](stored_row& r) { r.input.session_epoch += 1; }},
    {"trace_id", [](stored_row& r) { r.input.trace_id += "x"; }},
    {"state_before", [](stored_row& r) { r.state_before = protocol::lease_state::failed; }},
    {"decision", [](stored_row& r) { r.answer.decision = protocol::decision::rejected; }},
    {"reason", [](stored_row& r) { r.answer.reason = protocol::reason::lease_expired; }},
    {"rule", [](stored_row& r) { r.answer.rule = protocol::rule_id::none; }},
    {"stale_generation", [](stored_row& r) { r.answer.flags.stale_generation ^= true; }},
    {"late_progress", [](stored_row& r) { r.answer.flags.late_progress ^= true; }},
    {"lease_expired", [](stored_row& r) { r.answer.flags.lease_expired ^= true; }},
    {"ownership_conflict", [](stored_row& r) { r.answer.flags.ownership_conflict ^= true; }},
    {"derived", [](stored_row& r) { r.derived = !r.derived; }},
    {"rule_version", [](stored_row& r) { r.rule_version += 1; }},
    {"attachment", [](stored_row& r) { r.attachment += "x"; }},
};

struct VerifyColumns : Verify, ::testing::WithParamInterface<tampering> {};

TEST_P(VerifyColumns, AChangedColumnNamesItsRow) {
  forged_log log(directory.path());
  stored_row& target = find_renew(log);
  log.changed = target.row;
  GetParam().change(target);
  log.write(false);
  const auto report = verify();
  ASSERT_FALSE(report.proven());
  EXPECT_EQ(report.problems.front().row, log.changed) << report.problems.front().sentence;
}

INSTANTIATE_TEST_SUITE_P(EachColumn, VerifyColumns, ::testing::ValuesIn(columns_of_a_row),
                         [](const auto& given) { return std::string(given.param.name); });

/// Who writes the whole chain anew is still caught where a decision does not follow.
TEST_F(Verify, AForgedDecisionUnderAFreshChainNamesRowAndColumn) {
  forged_log log(directory.path());
  stored_row& target = find_renew(log);
  target.answer.decision = protocol::decision::rejected;
  log.write(true);
  const auto report = verify();
  ASSERT_FALSE(report.proven());
  EXPECT_EQ(report.problems.front().row, target.row);
  EXPECT_EQ(report.problems.front().column, "decision");
}

TEST_F(Verify, AFreshChainIsShownByAHeadThatWasKept) {
  forged_log log(directory.path());
  find_renew(log).input.frame_id += 1;
  log.write(true);
  EXPECT_TRUE(verify(false).proven()) << "nothing else can show it";
  EXPECT_FALSE(verify(true).proven());
}

TEST_F(Verify, ADeletedRowIsNamedByTheOneThatMissesIt) {
  forged_log log(directory.path());
  const stored_row target = find_renew(log);
  row_number next;
  for (const auto& r : log.rows) {
    if (r.key == target.key && r.row > target.row && next.value == 0) next = r.row;
  }
  log.rows.erase(log.rows.begin() + target.row.value - 1);
  log.write(true);
  const auto report = verify();
  ASSERT_FALSE(report.proven());
  EXPECT_LE(report.problems.front().row, next);
  EXPECT_GE(report.problems.front().row, target.row);
}

TEST_F(Verify, TwoSwappedRowsAreNamed) {
  forged_log log(directory.path());
  const auto at = static_cast<std::size_t>(find_renew(log).row.value) - 1;
  std::swap(log.rows[at - 1], log.rows[at]);
  log.write(true);
  const auto report = verify();
  ASSERT_FALSE(report.proven());
  EXPECT_GE(report.problems.front().row.value, static_cast<std::int64_t>(at));
  EXPECT_LE(report.problems.front().row.value, static_cast<std::int64_t>(at) + 1);
}

TEST_F(Verify, ACutTailIsShownByTheHeadAlone) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open((directory.path() / storage::database_name).c_str(), &db), SQLITE_OK);
  sqlite3_exec(db, "DELETE FROM batch WHERE first_row > (SELECT max(first_row) - 5 FROM batch)",
               nullptr, nullptr, nullptr);
  sqlite3_close(db);
  const auto kept = expect(storage::head_of_directory(directory.path()));
  ASSERT_LT(kept.last_row, head.last_row);
  const auto report = verify(true);
  ASSERT_FALSE(report.proven());
  EXPECT_EQ(report.problems.front().row.value, kept.last_row.value + 1);
}

TEST_F(Verify, ALogCutBelowItsCheckpointIsNamedWithoutAHead) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open((directory.path() / storage::database_name).c_str(), &db), SQLITE_OK);
  sqlite3_exec(db, "DELETE FROM batch WHERE first_row > 20", nullptr, nullptr, nullptr);
  sqlite3_close(db);
  const auto kept = expect(storage::head_of_directory(directory.path()));
  const auto report = verify();
  ASSERT_FALSE(report.proven());
  EXPECT_TRUE(std::any_of(report.problems.begin(), report.problems.end(), [&](const auto& p) {
    return p.row == kept.last_row && p.sentence.find("cut at its end") != std::string::npos;
  }));
}

TEST_F(Verify, AChangedPolicyNamesTheRowThatMadeItKnown) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open((directory.path() / storage::database_name).c_str(), &db), SQLITE_OK);
  sqlite3_exec(db,
               "UPDATE policy SET text = replace(text, 'max_losses=', 'max_losses=9') WHERE id = "
               "(SELECT id FROM policy ORDER BY id LIMIT 1)",
               nullptr, nullptr, nullptr);
  sqlite3_close(db);
  const auto report = verify();
  ASSERT_EQ(report.problem_count, 1);
  EXPECT_EQ(report.problems.front().column, "policy");
  EXPECT_GT(report.problems.front().row.value, 0);
}

TEST_F(Verify, AChangedPolicyRowUnderAFreshChainIsNamed) {
  forged_log log(directory.path());
  protocol::policy other;
  other.lease_duration.ms = 987654;
  log.rows.front().attachment = protocol::canonical_text(other);
  log.write(true);
  const auto report = verify();
  ASSERT_FALSE(report.proven());
  EXPECT_EQ(report.problems.front().row.value, 1);
}

TEST_F(Verify, ARecordThatIsNotTheFoldNamesItsRowAndField) {
  const auto rows = forged_log(directory.path()).rows;
  {
    storage::sqlite_reader reader(std::get<storage::connection>(storage::connection::open(
        directory.path() / storage::database_name, storage::connection::access::read_only)));
    std::vector<actors::checkpoint_entry> entries;
    reader.each_record([&](const storage::stored_record& r) {
      entries.push_back({r.key, *protocol::decode_image(r.image)});
    });
    entries.front().image.state.attempt += 1;
    auto store = expect(storage::open_sqlite_store({directory.path(), 64}));
    const row_number upto = recover(*store).head.checkpoint;
    expect(checkpoint(*store, {{entries.front()}, {}, upto, true}));
  }
  const auto report = verify();
  ASSERT_EQ(report.problem_count, 1);
  EXPECT_EQ(report.problems.front().column, "attempt");
}

/// Exported lines of the whole history.
struct VerifyLines : Verify {
  VerifyLines() {
    protocol::fold folded;
    for (const auto& r : forged_log(directory.path()).rows) {
      folded.feed(r);
      const auto* image = folded.find(r.key);
      std::string line;
      storage::append_evidence_line(line, r, image != nullptr ? image->state : protocol::record{},
                                    folded.deferred_row(), folded.policy_of(r.policy));
      lines.push_back(line);
    }
    for (const auto& [key, image] : folded.leases()) images[key] = image;
  }

  static storage::verify_report verify(const std::vector<std::string>& lines) {
    storage::line_verifier verifier;
    for (const auto& line : lines) verifier.feed(line);
    return verifier.finish();
  }

  std::vector<std::string> lines;
  std::map<protocol::lease_key, protocol::fold::lease_image> images;
};

TEST_F(VerifyLines, LinesAloneRebuildEveryRecord) {
  storage::line_verifier verifier;
  for (const auto& line : lines) verifier.feed(line);
  for (const auto& [key, image] : images) {
    ASSERT_TRUE(verifier.records().contains(key));
    // Session and trace of a frame that waits are in the lines too.
    EXPECT_EQ(protocol::first_difference(verifier.records().at(key).state, image.state), "")
        << key.lease.value;
  }
  const auto report = verifier.finish();
  for (const auto& each : report.problems) {
    ADD_FAILURE() << each.row.value << " " << each.column << ": " << each.sentence;
  }
  EXPECT_EQ(report.rows, static_cast<std::int64_t>(lines.size()));
}

TEST_F(VerifyLines, TheLinesOfOneLeaseAfterAnotherDoAsWell) {
  std::vector<std::string> sorted = lines;
  const auto lease_of = [](const std::string& line) {
    return std::string(boost::json::parse(line).at("lease_id").as_string());
  };
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](const auto& a, const auto& b) { return lease_of(a) < lease_of(b); });
  EXPECT_TRUE(verify(sorted).proven());
}

TEST_F(VerifyLines, WithoutPolicyRowsTheSubmitRowsHaveThem) {
  std::erase_if(lines, [](const std::string& line) {
    return boost::json::parse(line).at("event").as_string() == "policy";
  });
  EXPECT_TRUE(verify(lines).proven());
}

TEST_F(VerifyLines, NoLineHasThePayload) {
  for (const auto& line : lines) EXPECT_EQ(line.find("payload of"), std::string::npos);
}

TEST_F(VerifyLines, AChangedColumnOfTheRecordIsNamed) {
  for (const char* column : {"expires_at", "attempt", "generation", "next_offer_at"}) {
    auto changed = lines;
    auto line = boost::json::parse(changed[40]).as_object();
    line[column] = line[column].as_int64() + 1;
    changed[40] = boost::json::serialize(line);
    const auto report = verify(changed);
    ASSERT_EQ(report.problem_count, 1) << column;
    EXPECT_EQ(report.problems.front().row.value, 41);
    EXPECT_EQ(report.problems.front().column, column);
  }
}

TEST_F(VerifyLines, ALineThatCannotBeReadIsNamedByItsPlace) {
  for (const char* text : {"", "7", "{}", "{\"row\": 1", "{\"row\": \"one\"}"}) {
    auto changed = lines;
    changed.push_back(text);
    const auto report = verify(changed);
    ASSERT_EQ(report.problem_count, 1) << text;
    EXPECT_NE(report.problems.front().sentence.find(std::to_string(changed.size())),
              std::string::npos);
  }
}

TEST_F(VerifyLines, AJobThatShowsAnotherRecordIsNamedByItsField) {
  storage::line_verifier verifier;
  for (const auto& line : lines) verifier.feed(line);
  const auto& [key, image] = *images.begin();
  auto job = storage::record_json(image.state);
  job["row"] = image.last_row.value;
  for (const auto& line : lines) {
    const auto parsed = boost::json::parse(line).as_object();
    if (parsed.at("event").as_string() != "submit") continue;
    if (parsed.at("lease_id").as_string() != std::string_view(key.lease.value)) continue;
    if (parsed.at("decision").as_string() != "accepted") continue;
    for (const auto& [name, value] : parsed.at("attachment").as_object()) job[name] = value;
  }
  verifier.compare_job(job);
  EXPECT_TRUE(verifier.finish().proven());
  job["attempt"] = image.state.attempt + 1;
  job.erase("queue");
  verifier.compare_job(job);
  const auto report = verifier.finish();
  ASSERT_EQ(report.problem_count, 2);
  EXPECT_EQ(report.problems[0].column, "attempt");
  EXPECT_EQ(report.problems[1].column, "queue");
}

TEST_F(VerifyLines, AJobThatWasShownAtAnotherTimeIsPassedOver) {
  storage::line_verifier verifier;
  for (const auto& line : lines) verifier.feed(line);
  const auto newest = static_cast<std::int64_t>(lines.size());
  const auto& [key, image] = *images.begin();
  ASSERT_GT(image.last_row.value, 1);
  const boost::json::value id(key.lease.value);
  verifier.compare_job({{"job_id", id}, {"row", image.last_row.value - 1}});
  verifier.compare_job({{"job_id", id}, {"row", newest + 1}});
  verifier.compare_job({{"job_id", "later"}, {"row", newest + 1}});
  const auto report = verifier.finish();
  EXPECT_TRUE(report.proven());
  EXPECT_EQ(report.passed_over, 3);
  EXPECT_EQ(report.records, 0);
}

TEST_F(VerifyLines, AJobWhoseNewestRowTheLinesLackIsAProblem) {
  storage::line_verifier verifier;
  for (const auto& line : lines) verifier.feed(line);
  const auto newest = static_cast<std::int64_t>(lines.size());
  verifier.compare_job({{"job_id", "lost"}, {"row", newest}});
  EXPECT_EQ(verifier.finish().problem_count, 1);
}

/// A SQLite store whose log was cut behind base rows, with a job that was forgotten.
struct VerifyCut : ::testing::Test {
  VerifyCut() {
    auto store = expect(storage::open_sqlite_store({directory.path(), 64}));
    history past(*store, 11);
    for (const char* name : {"a", "b", "c"}) past.submit(name);
    past.wander(100);
    past.work("gone");
    protocol::event end;
    end.kind = protocol::event_kind::result;
    end.from = protocol::holder("worker/000102030405060708090a0b0c0d0e0f");
    end.gen = {1};
    end.ending = protocol::outcome::success;
    end.sent_at = past.images().at(key_of("gone")).last_at;
    past.happen("gone", end);
    past.checkpoint();
    cut_at = past.last_row();
    past.base_all();
    past.wander(40);
    past.forget("gone");
    past.checkpoint();
    EXPECT_GT(cut(*store, cut_at), 0);
    past.wander(30);
    last_row = past.last_row();
  }
  storage::verify_report verify() const {
    return expect(storage::verify_directory(directory.path(), {}));
  }

  temporary_directory directory;
  row_number cut_at;
  row_number last_row;
};

TEST_F(VerifyCut, ALogThatWasCutBehindItsBaseRowsIsProven) {
  const auto report = verify();
  for (const auto& p : report.problems) ADD_FAILURE() << p.row.value << " " << p.sentence;
  EXPECT_EQ(report.head.last_row, last_row);
  EXPECT_LT(report.rows, last_row.value);
}

/// The log is cut before the next checkpoint has taken the base rows over.
struct VerifyCutBehindTheCheckpoint : ::testing::Test {
  VerifyCutBehindTheCheckpoint() {
    auto store = expect(storage::open_sqlite_store({directory.path(), 64}));
    history past(*store, 17);
    for (const char* name : {"a", "b", "c"}) past.submit(name);
    past.wander(60);
    past.work("resting");
    const auto upto = past.last_row();
    past.work("late");
    past.wander(20);
    past.checkpoint();
    past.base_all();
    past.wander(20);
    EXPECT_GT(cut(*store, upto), 0);
  }
  std::vector<storage::verify_problem> problems() const {
    return expect(storage::verify_directory(directory.path(), {})).problems;
  }
  void run(const char* sql) const {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open((directory.path() / storage::database_name).c_str(), &db), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(db, sql, nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(db);
  }
  temporary_directory directory;
};

TEST_F(VerifyCutBehindTheCheckpoint, IsProven) {
  for (const auto& p : problems()) ADD_FAILURE() << p.row.value << " " << p.sentence;
}

TEST_F(VerifyCutBehindTheCheckpoint, ARecordThatIsGoneIsNamed) {
  run("DELETE FROM record WHERE lease = 'resting'");
  EXPECT_FALSE(problems().empty());
}

TEST_F(VerifyCutBehindTheCheckpoint, ARecordOfAnotherLeaseIsNamed) {
  run("UPDATE record SET image = (SELECT image FROM record WHERE lease = 'a'), last_row = (SELECT "
      "last_row FROM record WHERE lease = 'a') WHERE lease = 'resting'");
  EXPECT_FALSE(problems().empty());
}

TEST(VerifyBase, ABaseRowThatIsNotWhatTheRowsSaidIsNamed) {
  const temporary_directory directory;
  row_number base_row;
  {
    auto store = expect(storage::open_sqlite_store({directory.path(), 64}));
    history past(*store, 12);
    past.work("z");
    past.base_all();
    base_row = past.last_row();
  }
  const auto problems_with = [&](auto change) {
    forged_log log(directory.path());
    const auto intact = log.rows;
    auto& row = log.rows[static_cast<std::size_t>(base_row.value) - 1];
    auto base = *protocol::decode_base(row.attachment);
    change(base);
    row.attachment = protocol::encode_base(base);
    log.write(true);
    const auto report = expect(storage::verify_directory(directory.path(), {}));
    log.rows = intact;
    log.write(true);
    return report.problems;
  };
  EXPECT_TRUE(problems_with([](auto&) {}).empty());
  const std::vector<std::function<void(protocol::history_base&)>> changes = {
      [](auto& base) { base.image.state.attempt += 1; },
      [](auto& base) { base.image.counts.back().number += 1; },
      [](auto& base) { base.image.body += "x"; },
      [](auto& base) { base.image.last_at.ms += 1; },
      [](auto& base) { base.chosen.max_attempts += 1; },
  };
  for (const auto& change : changes) {
    const auto problems = problems_with(change);
    ASSERT_FALSE(problems.empty());
    EXPECT_EQ(problems.front().row, base_row);
  }
}

TEST_F(VerifyCut, AFloorThatWasLoweredIsNamed) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open((directory.path() / storage::database_name).c_str(), &db), SQLITE_OK);
  sqlite3_exec(db, "DELETE FROM floor", nullptr, nullptr, nullptr);
  sqlite3_close(db);
  const auto report = verify();
  ASSERT_FALSE(report.problems.empty());
  EXPECT_EQ(report.problems.front().column, "floor");
}

TEST_F(VerifyCut, AMissingBaseRowIsNamed) {
  auto store = expect(storage::open_sqlite_store({directory.path(), 64}));
  history past(*store, 13);
  past.submit("headless");
  past.checkpoint();
  EXPECT_GT(cut(*store, past.last_row()), 0);
  protocol::event offer;
  offer.kind = protocol::event_kind::offer;
  offer.from = protocol::holder("w/000102030405060708090a0b0c0d0e0f");
  past.happen("headless", offer);
  store.reset();
  const auto report = verify();
  ASSERT_FALSE(report.problems.empty());
  EXPECT_TRUE(std::ranges::any_of(report.problems, [](const auto& p) {
    return p.sentence.find("no base row stands for them") != std::string::npos;
  }));
}

}  // namespace
}  // namespace leasehold::tests
