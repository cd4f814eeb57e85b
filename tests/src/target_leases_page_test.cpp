// docs/design/target-leases.md: its tables against the rules, the reasons and the API.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "leasehold/protocol/reason.hpp"
#include "support/lock_walk.hpp"

namespace leasehold::tests {
namespace {

using cells = std::vector<std::string>;

std::string text_of(const char* path) {
  std::ifstream in(std::filesystem::path(LEASEHOLD_SOURCE_DIR) / path);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The parts between separators, without the spaces and the backticks around them.
cells split(const std::string& text, char separator) {
  cells out;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) {
    const auto from = part.find_first_not_of(" `");
    out.push_back(
        from == std::string::npos ? "" : part.substr(from, part.find_last_not_of(" `") - from + 1));
  }
  return out;
}

/// The rows of the table of the page whose head is this.
std::vector<cells> table(const std::string& head) {
  const auto page = text_of("docs/design/target-leases.md");
  const auto at = page.find("\n" + head + "\n");
  EXPECT_NE(at, std::string::npos) << head;
  std::vector<cells> rows;
  if (at == std::string::npos) return rows;
  std::istringstream in(page.substr(at + 1));
  std::string line;
  std::getline(in, line);
  std::getline(in, line);
  while (std::getline(in, line) && line.starts_with("| ")) {
    auto row = split(line.substr(1), '|');
    rows.push_back(std::move(row));
  }
  EXPECT_FALSE(rows.empty()) << head;
  return rows;
}

const std::set<lock_move>& moves() {
  static const std::set<lock_move> all = lock_walk::all();
  return all;
}

bool changes(const lock_move& m) {
  return m.before != m.after || m.decision == "accepted" || m.decision == "applied";
}

std::string text_of(const lock_move& m) {
  return m.before + " | " + m.event + " | " + m.origin + " | " + m.after + " | " + m.reason;
}

template <class Each>
void expect_same(const std::set<Each>& on_the_page, const std::set<Each>& in_the_program) {
  for (const auto& each : on_the_page) {
    EXPECT_TRUE(in_the_program.contains(each)) << "only on the page: " << each;
  }
  for (const auto& each : in_the_program) {
    EXPECT_TRUE(on_the_page.contains(each)) << "not on the page: " << each;
  }
}

TEST(TargetLeasesPage, ListsEveryTransitionAndNoOther) {
  std::set<std::string> listed;
  for (const auto& row : table("| before | event | by | after | reason |")) {
    ASSERT_EQ(row.size(), 5U);
    for (const auto& before : split(row[0], ';')) {
      for (const auto& event : split(row[1], ';')) {
        const auto after = row[3] == "the same" ? before : row[3];
        EXPECT_TRUE(listed.insert(text_of({before, event, row[2], after, "", row[4]})).second);
      }
    }
  }
  std::set<std::string> possible;
  for (const auto& m : moves()) {
    if (changes(m)) possible.insert(text_of(m));
  }
  expect_same(listed, possible);
}

/// Judged before the stage matters; the page says so in words.
const std::set<std::string> of_every_stage{"invalid_frame", "duplicate_request", "request_reused"};
const std::set<std::string> of_locks{"acquire", "renew", "release", "revoke", "resolve"};

TEST(TargetLeasesPage, ListsEveryRefusalByStage) {
  std::set<std::string> listed;
  for (const auto& row : table("| event | before | reason |")) {
    ASSERT_EQ(row.size(), 3U);
    for (const auto& before : split(row[1], ';')) {
      for (const auto& reason : split(row[2], ',')) {
        std::string line = row[0];
        line.append(" | ").append(before).append(" | ").append(reason);
        EXPECT_TRUE(listed.insert(std::move(line)).second);
      }
    }
  }
  std::set<std::string> possible;
  for (const auto& m : moves()) {
    if (m.decision == "accepted" || m.decision == "applied") continue;
    if (!of_locks.contains(m.event) || of_every_stage.contains(m.reason)) continue;
    possible.insert(m.event + " | " + m.before + " | " + m.reason);
  }
  expect_same(listed, possible);
}

TEST(TargetLeasesPage, IsRightAboutWhatIsJudgedInEveryStage) {
  std::set<std::pair<std::string, std::string>> seen;
  for (const auto& m : moves()) {
    if (of_every_stage.contains(m.reason)) seen.emplace(m.event, m.reason);
  }
  for (const char* event : {"acquire", "release", "revoke"}) {
    EXPECT_TRUE(seen.contains({event, "duplicate_request"})) << event;
    EXPECT_TRUE(seen.contains({event, "request_reused"})) << event;
  }
  EXPECT_FALSE(seen.contains({"renew", "duplicate_request"}));
  for (const char* event : {"acquire", "renew", "release"}) {
    EXPECT_TRUE(seen.contains({event, "invalid_frame"})) << event;
  }
}

TEST(TargetLeasesPage, OperationsOfJobsChangeNoLock) {
  int refused = 0;
  for (const auto& m : moves()) {
    for (const char* event : {"submit", "offer", "withdraw", "cancel", "reconcile", "prove"}) {
      if (m.event != event) continue;
      ++refused;
      EXPECT_EQ(m.before, m.after) << event;
      EXPECT_EQ(m.reason, m.before == "unknown" ? "unknown_lease" : "not_a_job") << event;
    }
  }
  EXPECT_GT(refused, 30);
}

TEST(TargetLeasesPage, ExplainsEachStateThatCanBeReached) {
  std::set<std::string> explained;
  for (const auto& row : table("| state | who has authority | may be granted |")) {
    explained.insert(row[0]);
  }
  std::set<std::string> reached;
  for (const auto& m : moves()) reached.insert({m.before, m.after});
  expect_same(explained, reached);
}

TEST(TargetLeasesPage, ListsEveryEventOfALocksEvidence) {
  std::set<std::string> listed;
  for (const auto& row : table("| event | origin | tells of |")) {
    ASSERT_EQ(row.size(), 3U);
    EXPECT_TRUE(protocol::event_kind_from_word(row[0])) << row[0];
    listed.insert(row[0] + " " + row[1]);
  }
  std::set<std::string> possible;
  for (const auto& m : moves()) possible.insert(m.event + " " + m.origin);
  // Rows about the lease that no rule decides.
  for (const char* own : {"counted", "base", "forget"}) {
    possible.insert(own + std::string(" coordinator"));
  }
  expect_same(listed, possible);
}

/// The reasons that the operations about locks have, each with the operations.
std::map<std::string, std::set<std::string>> reasons_of_the_api(std::size_t& operations) {
  const auto document = boost::json::parse(text_of("docs/openapi.json"));
  std::map<std::string, std::set<std::string>> out;
  const std::map<std::string, std::string> short_names{
      {"acquireLock", "acquire"},   {"renewLock", "renew"},     {"releaseLock", "release"},
      {"revokeLock", "revoke"},     {"resolveLock", "resolve"}, {"getLock", "get"},
      {"listLocks", "list"},        {"checkFence", "fence"},    {"lockEvidence", "evidence"},
      {"normalizeKey", "normalize"}};
  for (const auto& path : document.at("paths").as_object()) {
    for (const auto& operation : path.value().as_object()) {
      const auto name =
          short_names.find(std::string(operation.value().at("operationId").as_string()));
      if (name == short_names.end()) continue;
      ++operations;
      for (const auto& word : operation.value().at("x-reasons").as_array()) {
        out[std::string(word.as_string())].insert(name->second);
      }
    }
  }
  EXPECT_EQ(operations, short_names.size());
  return out;
}

TEST(TargetLeasesPage, GivesEachReasonItsStatusItsClassAndItsCalls) {
  std::size_t operations = 0;
  auto wanted = reasons_of_the_api(operations);
  for (const auto& row : table("| reason | status | class | where |")) {
    ASSERT_EQ(row.size(), 4U);
    const auto reason = protocol::reason_from_word(row[0]);
    ASSERT_TRUE(reason) << row[0];
    const auto* entry = protocol::find_reason(*reason);
    EXPECT_EQ(row[1], std::to_string(entry->http_status)) << row[0];
    EXPECT_EQ(row[2], protocol::word(entry->refusal_class)) << row[0];
    const auto calls = wanted.extract(row[0]);
    ASSERT_FALSE(calls.empty()) << row[0] << " is no answer of a call about locks";
    if (row[3] == "all") {
      EXPECT_EQ(calls.mapped().size(), operations) << row[0];
      continue;
    }
    const auto names = split(row[3], ',');
    EXPECT_EQ(calls.mapped(), std::set<std::string>(names.begin(), names.end())) << row[0];
  }
  for (const auto& left : wanted) ADD_FAILURE() << "not on the page: " << left.first;
}

/// What the rules refuse an acquire, renew, release, revoke or resolve with is in the description
/// too.
TEST(TargetLeasesPage, TheApiTellsOfEachReasonThatTheRulesHave) {
  std::size_t operations = 0;
  const auto told = reasons_of_the_api(operations);
  for (const auto& m : moves()) {
    if (m.decision != "rejected" || !of_locks.contains(m.event)) continue;
    const auto found = told.find(m.reason);
    ASSERT_NE(found, told.end()) << m.reason;
    EXPECT_TRUE(found->second.contains(m.event)) << m.event << ": " << m.reason;
  }
}

}  // namespace
}  // namespace leasehold::tests
