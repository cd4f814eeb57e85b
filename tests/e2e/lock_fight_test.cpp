// Processes fight over locks while they are stopped and killed, and leaseholdd with them. What they
// have logged, the exported evidence and the fenced table are compared afterwards, without asking
// the server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <random>
#include <set>
#include <sstream>
#include <thread>

#include "fight_record.hpp"
#include "live_server.hpp"
#include "support/fenced_sqlite.hpp"

namespace leasehold::e2e {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr int fighters_at_once = 8;
constexpr int keys = 20;
constexpr int term_ms = 300;
constexpr std::int64_t fewest_refused = 20;
/// How long the fight goes on at most, beyond its time, until so many were refused and every key
/// was held.
constexpr seconds longest_extension{60};

seconds fight_time() {
  const char* wanted = std::getenv("LEASEHOLD_FIGHT_SECONDS");
  return seconds{wanted == nullptr ? 8 : std::strtol(wanted, nullptr, 10)};
}

std::set<std::string> leases_of(const fight_record& record) {
  std::set<std::string> out;
  for (const auto& [id, seen] : record.grants) out.insert(id.first);
  return out;
}

class LockFight : public testing::Test {
 protected:
  struct fighter {
    std::unique_ptr<program_run> run;
    steady_clock::time_point stopped_until;  ///< of the epoch: it runs
  };

  void SetUp() override {
    ASSERT_NE(table_, nullptr);
    std::ofstream(kept_.path() / "token") << server_.token("client");
    for (int i = 0; i < fighters_at_once; ++i) fighters_.push_back({send_in(), {}});
  }

  std::unique_ptr<program_run> send_in() {
    const auto name = "f" + std::to_string(++sent_);
    return std::make_unique<program_run>(
        LOCK_FIGHTER,
        std::vector<std::string>{server_.url(), kept_.path() / "token", name, file_, logs() / name,
                                 std::to_string(sent_), std::to_string(keys),
                                 std::to_string(term_ms)},
        kept_.path() / "output");
  }

  [[nodiscard]] std::filesystem::path logs() const {
    std::filesystem::create_directories(kept_.path() / "logs");
    return kept_.path() / "logs";
  }
  [[nodiscard]] fight_record read_logs() const {
    fight_record out;
    for (const auto& entry : std::filesystem::directory_iterator(logs())) out.read(entry.path());
    return out;
  }

  int below(int end) { return std::uniform_int_distribution<int>(0, end - 1)(dice_); }
  fighter& anyone() { return fighters_[static_cast<std::size_t>(below(fighters_at_once))]; }

  /// Stops one for longer than its term and the wait of whoever comes next.
  void stop_one() {
    auto& it = anyone();
    if (it.stopped_until != steady_clock::time_point{}) return;
    it.run->stand_still();
    it.stopped_until = steady_clock::now() + milliseconds{2 * term_ms + below(2 * term_ms)};
  }
  void wake_those_due() {
    for (auto& it : fighters_) {
      if (it.stopped_until == steady_clock::time_point{} ||
          steady_clock::now() < it.stopped_until) {
        continue;
      }
      it.run->go_on();
      it.stopped_until = {};
    }
  }
  void kill_one() {
    auto& it = anyone();
    it = {send_in(), {}};  // the one before is killed with its program_run
    ++kills_;
  }
  void kill_the_server() {
    server_.kill();
    server_.start();
    ++server_kills_;
  }

  void fight_for(seconds time) {
    const auto end = steady_clock::now() + time;
    const auto server_every = std::min<milliseconds>(milliseconds(time) / 3, seconds{5});
    auto server_next = steady_clock::now() + server_every;
    const auto is_enough = [this] {
      const auto record = read_logs();
      return record.refused >= fewest_refused && leases_of(record).size() == keys;
    };
    while (steady_clock::now() < end ||
           (steady_clock::now() < end + longest_extension && !is_enough())) {
      std::this_thread::sleep_for(milliseconds{60});  // the pace of the kills: no wait for anything
      wake_those_due();
      const int fate = below(16);
      if (fate == 0) kill_one();
      if (fate > 9) stop_one();
      if (steady_clock::now() >= server_next) {
        kill_the_server();
        server_next += server_every;
      }
    }
    fighters_.clear();
  }

  /// What `leasehold export` writes.
  std::vector<json::object> exported() {
    std::ofstream(kept_.path() / "auditor") << server_.token("auditor");
    const auto said =
        run_leasehold({"--url", server_.url(), "--token-file", kept_.path() / "auditor", "export"});
    EXPECT_EQ(said.exit_code, 0) << said.output.substr(0, 1000);
    std::vector<json::object> out;
    std::istringstream lines(said.output);
    for (std::string line; std::getline(lines, line);) {
      out.push_back(json::parse(line).as_object());
    }
    return out;
  }

  tests::temporary_directory kept_;
  live_server server_{2, {"--policy-recovery-grace-ms", "300"}};
  std::string file_ = kept_.path() / "work.db";
  std::unique_ptr<tests::fenced_sqlite> table_ = tests::fenced_sqlite::open(file_);
  std::vector<fighter> fighters_;
  std::minstd_rand dice_{7};
  int sent_ = 0;
  int kills_ = 0;
  int server_kills_ = 0;
};

TEST_F(LockFight, NoTwoHoldAKeyTokensRiseAndTheTargetTakesNoStaleWrite) {
  fight_for(fight_time());
  const auto record = read_logs();
  const auto evidence = exported();
  EXPECT_THAT(faults_of_intervals(record), IsEmpty());
  EXPECT_THAT(faults_against(record, evidence), IsEmpty());
  EXPECT_THAT(faults_of_target(table_->all()), IsEmpty());
  EXPECT_GE(record.refused, fewest_refused);
  EXPECT_EQ(record.failed, 0);
  EXPECT_GE(server_kills_, 2);
  EXPECT_THAT(leases_of(record), SizeIs(keys));
  expect_proven(server_);
  std::cout << record.grants.size() << " grants, " << record.written << " writes taken, "
            << record.refused << " refused as stale, " << evidence.size() << " rows, " << kills_
            << " holders killed, " << server_kills_ << " kills of leaseholdd\n";
}

// ---- what the comparison finds

json::object evidence_row(std::int64_t row, std::int64_t token, const char* state,
                          const char* holder) {
  return {{"row", row},     {"lease_id", "k"},     {"kind", "lock"},
          {"state", state}, {"generation", token}, {"holder_identity", holder}};
}

TEST(FightRecord, IntervalsThatTouchOrCrossAreFoundAndThoseBesideEachOtherAreNot) {
  for (const std::int64_t next : {4, 5, 6}) {
    fight_record record;
    record.grants[{"k", 1}] = {"c/a", 2, 5};
    record.grants[{"k", 2}] = {"c/b", next, 9};
    record.grants[{"other", 1}] = {"c/b", 3, 9};
    EXPECT_THAT(faults_of_intervals(record), SizeIs(next <= 5 ? 1 : 0)) << next;
  }
}

TEST(FightRecord, ALowerTokenAtLaterRowsIsFound) {
  fight_record record;
  record.grants[{"k", 2}] = {"c/a", 2, 5};
  record.grants[{"k", 1}] = {"c/b", 7, 9};
  EXPECT_THAT(faults_of_intervals(record), SizeIs(1));
}

TEST(FightRecord, AnIntervalOutsideOfTheEvidenceIsFound) {
  const std::vector<json::object> evidence{
      evidence_row(2, 1, "active", "c/a"), evidence_row(4, 1, "active", "c/a"),
      evidence_row(6, 1, "expired", "c/a"), evidence_row(7, 2, "active", "c/b")};
  const auto faults = [&](std::int64_t token, const seen_grant& seen) {
    fight_record record;
    record.grants[{"k", token}] = seen;
    return faults_against(record, evidence);
  };
  EXPECT_THAT(faults(1, {"c/a", 2, 5}), IsEmpty());
  EXPECT_THAT(faults(1, {"c/a", 1, 5}), SizeIs(1));
  EXPECT_THAT(faults(1, {"c/a", 2, 6}), SizeIs(1));
  EXPECT_THAT(faults(1, {"c/b", 2, 5}), SizeIs(1));
  EXPECT_THAT(faults(2, {"c/b", 7, 99}), IsEmpty());
  EXPECT_THAT(faults(3, {"c/b", 8, 8}), SizeIs(1));
}

TEST(FightRecord, EvidenceThatGrantsWhatIsHeldOrALowerTokenIsFound) {
  EXPECT_THAT(faults_against(
                  {}, {evidence_row(1, 1, "active", "c/a"), evidence_row(2, 2, "active", "c/b")}),
              ElementsAre(HasSubstr("while it is held")));
  EXPECT_THAT(faults_against(
                  {}, {evidence_row(1, 2, "active", "c/a"), evidence_row(2, 2, "released", "c/a"),
                       evidence_row(3, 1, "active", "c/b")}),
              ElementsAre(HasSubstr("token 1 after 2")));
}

TEST(FightRecord, AStaleWriteThatWasTakenIsFound) {
  EXPECT_THAT(faults_of_target({{"k", 1}, {"k", 2}, {"x", 1}, {"k", 2}}), IsEmpty());
  EXPECT_THAT(faults_of_target({{"k", 2}, {"x", 1}, {"k", 1}}), SizeIs(1));
}

TEST(FightRecord, ATokenThatTwoWereGrantedIsFound) {
  const tests::temporary_directory kept;
  std::ofstream(kept.path() / "a") << "granted k 1 2 c/a\nwritten k 1\nkept k 1 5\nkept k 1 4\n";
  std::ofstream(kept.path() / "b") << "granted k 1 8 c/b\nstale k 1\n";
  fight_record record;
  record.read(kept.path() / "a");
  EXPECT_EQ(record.grants.at({"k", 1}), (seen_grant{"c/a", 2, 5}));
  EXPECT_THAT(record.faults, IsEmpty());
  record.read(kept.path() / "b");
  EXPECT_THAT(faults_of_intervals(record), SizeIs(1));
  EXPECT_EQ(record.written, 1);
  EXPECT_EQ(record.refused, 1);
}

}  // namespace
}  // namespace leasehold::e2e
