// Every later build opens what an earlier release wrote, proves it, and goes on with it.
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "src/store/sqlite_store.hpp"
#include "src/store/verify.hpp"
#include "support/coordinator_rig.hpp"
#include "support/temporary_directory.hpp"
#include "support/waiting_store.hpp"

namespace leasehold::tests {
namespace {

namespace fs = std::filesystem;
using protocol::event_kind;
using protocol::lease_state;

std::vector<std::string> releases() {
  std::vector<std::string> found;
  for (const auto& each : fs::directory_iterator(LEASEHOLD_SOURCE_DIR "/tests/upgrade/releases")) {
    found.push_back(each.path().filename().string());
  }
  std::ranges::sort(found);
  return found;
}

std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// A copy of the directory that a release left, and what is known of it.
class Upgrade : public testing::TestWithParam<std::string> {
 protected:
  Upgrade() {
    fs::copy(kept() / "store", directory(), fs::copy_options::recursive);
    auto text = text_of(kept() / "head");
    text.erase(text.find_last_not_of('\n') + 1);
    head_ = storage::head_from_text(text);
  }
  static fs::path kept() {
    return fs::path(LEASEHOLD_SOURCE_DIR) / "tests/upgrade/releases" / GetParam();
  }
  [[nodiscard]] fs::path directory() const { return temporary_.path() / "store"; }

  std::unique_ptr<actors::store> open() {
    auto opened = storage::open_sqlite_store({directory(), 64});
    if (const auto* error = std::get_if<actors::store_error>(&opened)) {
      ADD_FAILURE() << error->sentence;
      return nullptr;
    }
    return std::move(std::get<std::unique_ptr<actors::store>>(opened));
  }
  std::vector<protocol::stored_row> rows() {
    const auto store = open();
    return std::get<std::vector<protocol::stored_row>>(store->rows_from({1}, 1'000'000));
  }

  /// A coordinator on the copy, so long after the newest row that it has.
  void live(std::int64_t after_ms, const std::function<void(coordinator_rig&)>& life) {
    const auto clock = std::make_shared<manual_clock>();
    clock->set(rows().back().at + protocol::duration{after_ms});
    coordinator_rig rig(std::make_shared<memory_store>(), {}, clock, false,
                        std::make_shared<waiting_store>(open()));
    ASSERT_FALSE(rig.start_error) << rig.start_error->sentence;
    life(rig);
    EXPECT_EQ(rig.fatal, "");
  }

  /// Everything is proven, and the log still extends the one that the release left.
  void expect_proven() const {
    ASSERT_TRUE(head_);
    storage::verify_options how;
    how.head = head_;
    const auto verified = storage::verify_directory(directory(), how);
    ASSERT_TRUE(std::holds_alternative<storage::verify_report>(verified))
        << std::get<actors::store_error>(verified).sentence;
    const auto& report = std::get<storage::verify_report>(verified);
    for (const auto& each : report.problems) {
      ADD_FAILURE() << "row " << each.row.value << " " << each.column << ": " << each.sentence;
    }
    EXPECT_TRUE(report.proven());
    EXPECT_GT(report.records, 0);
  }

  temporary_directory temporary_;
  std::optional<actors::log_head> head_;
};

/// Ends what a worker has, and yields the generation that it had.
std::int64_t complete(coordinator_rig& rig, rig_worker& worker, const std::string& id) {
  const auto gen = job(rig, id)->state->gen.value;
  worker.ack(id, gen);
  worker.result(id, gen);
  EXPECT_EQ(job(rig, id)->state->state, lease_state::completed) << id;
  return gen;
}

TEST_P(Upgrade, WhatTheReleaseLeftIsProvenAsItIs) { expect_proven(); }

TEST_P(Upgrade, EveryKindOfRowIsInWhatIsKept) {
  std::set<std::string_view> kinds;
  for (const auto& row : rows()) kinds.insert(protocol::word(row.input.kind));
  std::istringstream lines(text_of(kept() / "rows.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    const auto kind = protocol::event_kind_from_word(
        std::string_view(boost::json::parse(line).at("event").as_string()));
    ASSERT_TRUE(kind) << line;
    kinds.insert(protocol::word(*kind));
  }
  for (int kind = 1; kind <= static_cast<int>(event_kind::restore); ++kind) {
    const auto word = protocol::word(static_cast<event_kind>(kind));
    if (word.empty()) continue;
    EXPECT_TRUE(kinds.contains(word)) << word << " is not in " << kept();
  }
}

TEST_P(Upgrade, TheStoreHasACutFrontAFloorAndWhatWasUnderWay) {
  EXPECT_GT(rows().front().row.value, 1);
  live(1'000, [](coordinator_rig& rig) {
    EXPECT_EQ(job(rig, "active")->state->state, lease_state::active);
    EXPECT_EQ(job(rig, "early")->state->deferred.size(), 1U);
    EXPECT_FALSE(job(rig, "revoked")->state->unproven.empty());
    EXPECT_FALSE(job(rig, "done")) << "forgotten";
  });
  bool floor_known = false;
  const auto found = open()->recover(
      [&](const actors::store_state& state) {
        floor_known = std::ranges::any_of(state.floors, [](auto f) { return f.value > 0; });
      },
      [](auto&&) {}, [](auto, const auto&) {}, [](auto&&) {});
  EXPECT_TRUE(std::holds_alternative<actors::recovered_head>(found));
  EXPECT_TRUE(floor_known);
}

TEST_P(Upgrade, WorkThatWasUnderWayEndsUnderItsOldGeneration) {
  live(1'000, [](coordinator_rig& rig) {
    const auto gen = job(rig, "active")->state->gen.value;
    rig_worker worker(rig, "w");
    EXPECT_EQ(worker.renew("active", gen, 2).reason, protocol::reason::renewed);
    EXPECT_EQ(complete(rig, worker, "active"), gen);
    // The renew that overtook its ACK was kept all the time.
    const auto early = job(rig, "early")->state->gen.value;
    EXPECT_EQ(worker.ack("early", early).reason, protocol::reason::ack_accepted);
    EXPECT_EQ(job(rig, "early")->state->renew_sequence.value, 1);
  });
  expect_proven();
}

TEST_P(Upgrade, GrantsGoOnAndNoGenerationComesAgain) {
  constexpr std::int64_t year_ms = 31'536'000'000;
  std::map<std::string, std::int64_t> granted;
  for (const auto& row : rows()) {
    const auto on = row.input.kind == event_kind::base ? std::int64_t{0} : row.input.gen.value;
    granted[row.key.lease.value] = std::max(granted[row.key.lease.value], on);
  }
  live(year_ms, [&](coordinator_rig& rig) {
    rig_worker worker(rig, "w");
    worker.credit(20);
    // Known since then, forgotten since then, and never known.
    for (const char* id : {"early", "waiting", "done", "new"}) {
      submit(rig, id);
      EXPECT_GT(complete(rig, worker, id), granted[id]) << id;
    }
    rig.checkpoint();
  });
  expect_proven();
  live(60'000, [](coordinator_rig& rig) {
    for (const char* id : {"early", "waiting", "done", "new"}) {
      EXPECT_EQ(job(rig, id)->state->state, lease_state::completed) << id;
    }
  });
  expect_proven();
}

TEST_P(Upgrade, LinesThatWereExportedThenAreStillProven) {
  storage::line_verifier verifier;
  std::istringstream lines(text_of(kept() / "rows.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    EXPECT_EQ(verifier.feed(line), std::nullopt);
  }
  const auto report = verifier.finish();
  for (const auto& each : report.problems) {
    ADD_FAILURE() << "row " << each.row.value << " " << each.column << ": " << each.sentence;
  }
  EXPECT_GT(report.rows, 100);
  EXPECT_GT(report.leases, 5);
}

INSTANTIATE_TEST_SUITE_P(Releases, Upgrade, testing::ValuesIn(releases()), [](const auto& each) {
  std::string name = "v" + each.param;
  std::ranges::replace(name, '.', '_');
  return name;
});

}  // namespace
}  // namespace leasehold::tests
