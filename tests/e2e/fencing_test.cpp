// What each form of the fence promises, shown with a holder that is stopped past its term: in front
// of a service with the C++ guard, of a table in SQLite and of one in PostgreSQL.
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <sstream>

#include "leasehold/client/fencing_guard.hpp"
#include "live_server.hpp"
#include "pg_sandbox.hpp"
#include "support/fenced_target.hpp"
#include "support/guarded_service.hpp"

namespace leasehold::e2e {
namespace {

using client::fence_verdict;
using tests::written_row;

constexpr int short_term_ms = 500;
constexpr int long_term_ms = 60'000;

/// A holder's process, and what it has said so far.
class holder {
 public:
  holder(const live_server& server, const std::string& name, int term_ms, const std::string& target)
      : name_(name) {
    std::ofstream(kept_.path() / "token") << server.token("client");
    run_ = std::make_unique<program_run>(
        FENCE_HOLDER,
        std::vector<std::string>{server.url(), kept_.path() / "token", name,
                                 std::to_string(term_ms), target, kept_.path()},
        output());
    read_grant();
  }

  /// Lets it write `text`, or tell its token only when there is none.
  void order(const std::string& text) {
    const auto file = kept_.path() / (name_ + '.' + std::to_string(++orders_));
    std::ofstream(kept_.path() / "new") << text;
    std::filesystem::rename(kept_.path() / "new", file);
  }
  /// What became of the newest order.
  std::string outcome() {
    const auto before = '\n' + std::to_string(orders_) + ' ';
    std::string said;
    EXPECT_TRUE(eventually([&] {
      said = content_of(output());
      return said.ends_with('\n') && said.find(before) != said.npos;
    })) << name_
        << ": " << said;
    said.erase(0, said.rfind(before) + before.size());
    return said.substr(0, said.find('\n'));
  }
  std::string write(const std::string& text) {
    order(text);
    return outcome();
  }
  void stop() const { run_->stand_still(); }
  void go_on() const { run_->go_on(); }

  std::int64_t token = 0;
  std::string lease_id;
  std::int64_t expires_ms = 0;

 private:
  [[nodiscard]] std::filesystem::path output() const { return kept_.path() / "output"; }

  void read_grant() {
    EXPECT_TRUE(eventually([this] { return content_of(output()).ends_with('\n'); }));
    std::istringstream said(content_of(output()));
    std::string first;
    said >> first >> token >> lease_id >> expires_ms;
    EXPECT_EQ(first, "acquired") << said.str();
  }

  tests::temporary_directory kept_;
  std::string name_;
  int orders_ = 0;
  std::unique_ptr<program_run> run_;
};

/// Whether the token is the live one, as GET /v1/fences says.
bool is_live(live_server& server, const holder& of) {
  const auto said = server.get("/v1/fences/" + of.lease_id + "?token=" + std::to_string(of.token));
  EXPECT_EQ(said.status, 200) << said.text;
  return said.body.at("live").as_bool();
}

bool ends(live_server& server, const holder& of) {
  return eventually([&] { return !is_live(server, of); });
}

std::int64_t now_ms() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
}

/// What stands behind the fence; the parameter says which form.
class fenced_by : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const auto kind = GetParam();
    if (kind == "sqlite") {
      address_ = "sqlite:" + (kept_.path() / "work.db").string();
    } else if (kind == "postgresql") {
      sandbox_ = std::make_unique<pg_sandbox>();
      address_ = "postgresql:" + sandbox_->where();
    } else {
      service_ = std::make_unique<tests::guarded_service>(kept_.path() / "socket");
      address_ = "guard:" + (kept_.path() / "socket").string();
    }
  }
  std::vector<written_row> rows(const holder& of) {
    if (service_) return service_->rows(of.lease_id);
    const auto target = tests::open_target(address_);
    return target ? target->rows(of.lease_id) : std::vector<written_row>{};
  }
  holder acquire(const std::string& name, int term_ms) {
    return {server_, name, term_ms, address_};
  }

  tests::temporary_directory kept_;
  live_server server_{1};
  std::unique_ptr<pg_sandbox> sandbox_;
  std::unique_ptr<tests::guarded_service> service_;
  std::string address_;
};
INSTANTIATE_TEST_SUITE_P(Forms, fenced_by, testing::Values("guard", "sqlite", "postgresql"),
                         [](const auto& with) { return with.param; });

TEST_P(fenced_by, AHolderStoppedPastItsTermIsRefusedOnceItsSuccessorHasWritten) {
  holder old = acquire("old", short_term_ms);
  EXPECT_EQ(old.write("before"), "written");
  old.stop();
  holder successor = acquire("new", long_term_ms);  // waits until the term of the old one is over
  ASSERT_GT(successor.token, old.token);
  ASSERT_EQ(successor.lease_id, old.lease_id);
  EXPECT_EQ(successor.write("after"), "written");
  old.order("late");
  old.go_on();
  EXPECT_EQ(old.outcome(), "stale");
  EXPECT_EQ(successor.write("goes-on"), "written");
  const std::vector<written_row> wanted{
      {old.token, "before"}, {successor.token, "after"}, {successor.token, "goes-on"}};
  EXPECT_EQ(rows(old), wanted);
  EXPECT_FALSE(is_live(server_, old));
  EXPECT_TRUE(is_live(server_, successor));
}

TEST_P(fenced_by, AnExpiredHolderIsAcceptedUntilTheNewTokenHasComeThoughItTakesNoWriteToTellIt) {
  holder old = acquire("old", short_term_ms);
  old.stop();
  holder successor = acquire("new", long_term_ms);
  old.order("in-between");
  old.go_on();
  EXPECT_EQ(old.outcome(), "written") << "nobody has told the target of the successor yet";
  EXPECT_EQ(successor.write(""), "written");
  EXPECT_EQ(old.write("late"), "stale") << "the token alone was enough";
  EXPECT_EQ(rows(old), (std::vector<written_row>{{old.token, "in-between"}}));
}

TEST_P(fenced_by,
       AnExpiredHolderWithoutASuccessorIsAcceptedAndOnlyTheCoordinatorAndTheDeadlineTell) {
  holder old = acquire("old", short_term_ms);
  old.stop();
  ASSERT_TRUE(ends(server_, old));
  old.order("late");
  old.go_on();
  EXPECT_EQ(old.outcome(), "written");
  EXPECT_FALSE(is_live(server_, old));
  EXPECT_GE(now_ms(), old.expires_ms) << "a target that was given the deadline sees it by itself";
}

class fence_call : public testing::Test {
 protected:
  std::string nowhere_ = "sqlite::memory:";
  live_server server_{1};
};

TEST_F(fence_call, TellsTheLiveTokenFromTheMomentOfTheGrantToTheEndOfItsTermAndNoOther) {
  holder first(server_, "first", short_term_ms, nowhere_);
  const auto fence = [&](std::int64_t token) {
    return server_.get("/v1/fences/" + first.lease_id + "?observed&token=" + std::to_string(token))
        .body;
  };
  for (const int off : {-1, 0, 1}) {
    if (first.token + off < 1) continue;
    EXPECT_EQ(fence(first.token + off).at("live").as_bool(), off == 0) << off;
  }
  EXPECT_EQ(fence(first.token).at("observed").to_number<std::int64_t>(), first.token);
  ASSERT_TRUE(ends(server_, first));
  EXPECT_GE(now_ms(), first.expires_ms) << "not before the deadline that was told";
  EXPECT_EQ(fence(first.token).at("observed").to_number<std::int64_t>(), first.token)
      << "observed stays";
}

TEST_F(fence_call, ObservedMakesAGuardThatHasForgottenEverythingRefuseTheOldHolderAtOnce) {
  const holder old(server_, "old", short_term_ms, nowhere_);
  const holder successor(server_, "new", long_term_ms, nowhere_);
  client::fencing_guard forgetful;
  EXPECT_EQ(forgetful.raise(old.lease_id, old.token), fence_verdict::accepted)
      << "after a start a guard knows nothing";
  client::fencing_guard told;
  const auto said = server_.get("/v1/fences/" + old.lease_id + "?observed");
  ASSERT_EQ(said.status, 200) << said.text;
  told.raise(old.lease_id, said.body.at("observed").to_number<std::int64_t>());
  EXPECT_EQ(told.raise(old.lease_id, old.token), fence_verdict::stale);
  EXPECT_EQ(told.raise(old.lease_id, successor.token), fence_verdict::accepted);
}

}  // namespace
}  // namespace leasehold::e2e
