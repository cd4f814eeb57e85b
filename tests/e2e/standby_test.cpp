// Two coordinators on one PostgreSQL database under load: the active one is killed, stopped and cut
// off from the database in turn, and the other one takes over.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <set>

#include "leasehold/client/worker.hpp"
#include "live_server.hpp"
#include "socket_load.hpp"
#include "support/database_place.hpp"
#include "support/postgres_proxy.hpp"
#include "support/postgres_server.hpp"
#include "support/raw_http.hpp"
#include "support/stored_log.hpp"

namespace leasehold::e2e {
namespace {

using std::chrono::milliseconds;
using steady = std::chrono::steady_clock;
using tests::postgres_proxy;
using tests::postgres_server;
using tests::proxy_link;

/// What the coordinators wait before they take over, and what recovery may take besides.
constexpr milliseconds term{2000};
constexpr milliseconds recovery{2000};

int rounds_wanted() {
  const char* wanted = std::getenv("LEASEHOLD_STANDBY_ROUNDS");
  return wanted == nullptr ? 1 : static_cast<int>(std::strtol(wanted, nullptr, 10));
}

/// Two coordinators, each with its own way to the database.
class two_coordinators {
 public:
  two_coordinators() {
    for (std::size_t i = 0; i < 2; ++i) {
      const std::vector<std::string> more{"--store", database.url("postgres", ways[i].directory()),
                                          "--epoch-term", "2s"};
      const auto fill = [&](const std::filesystem::path& data) {
        if (i == 0) return;
        std::filesystem::copy_file(all[0]->principals_file(), data / "principals.toml",
                                   std::filesystem::copy_options::overwrite_existing);
      };
      all[i] = std::make_unique<live_server>(2, more, std::vector<std::string>{}, fill,
                                             std::vector<std::string>{}, tls_trust{},
                                             i == 0 ? waits_for::ready : waits_for::listening);
      all[i]->wait_for(waits_for::listening);
      if (i > 0) all[i]->share_tokens(*all[0]);
    }
  }

  live_server& active() { return *all[active_]; }
  live_server& standby() { return *all[1 - active_]; }
  postgres_proxy& way_of_active() { return ways[active_]; }
  void swap() { active_ = 1 - active_; }
  [[nodiscard]] std::string urls() const { return all[0]->url() + "," + all[1]->url(); }

  postgres_server database;
  std::array<postgres_proxy, 2> ways{postgres_proxy(database.socket()),
                                     postgres_proxy(database.socket())};
  std::array<std::unique_ptr<live_server>, 2> all;

 private:
  std::size_t active_ = 0;
};

/// A worker of this process that knows both, and works on its jobs until it is told to finish.
class lasting_work {
 public:
  lasting_work(two_coordinators& pair, int jobs) : jobs_(jobs) {
    for (int i = 0; i < jobs; ++i) {
      pair.active().submit(name(i), {{"lease_duration_ms", 9000}}, "lasting");
    }
    client::worker_options options;
    options.urls = {pair.all[0]->url(), pair.all[1]->url()};
    options.token = pair.active().token("w2");
    options.queues = {{"lasting", jobs, {}}};
    options.on_job = [this](const client::job& job) {
      ++begun;
      while (!finish && job.stop() == client::stop_reason::none) {
        std::this_thread::sleep_for(milliseconds{5});
      }
      if (job.stop() != client::stop_reason::none) ++stopped;
      job.complete("done");
    };
    worker_ = std::make_unique<client::worker>(std::move(options));
    EXPECT_FALSE(worker_->start());
    EXPECT_TRUE(eventually([&] { return begun == jobs; }));
  }

  [[nodiscard]] bool connected() const { return worker_->connected(); }
  /// Expects that no job was lost or begun again, and that all results are taken by `server`.
  void expect_unharmed(live_server& server) {
    EXPECT_TRUE(eventually([&] { return connected(); }));
    EXPECT_EQ(begun, jobs_) << "a job was begun again";
    EXPECT_EQ(stopped, 0) << "a job lost its lease";
    finish = true;
    for (int i = 0; i < jobs_; ++i) {
      EXPECT_TRUE(server.reaches(name(i), "completed"));
      EXPECT_EQ(server.job(name(i)).at("generation"), 1);
    }
    EXPECT_TRUE(worker_->stop({5000}, {0}));
  }

 private:
  static std::string name(int i) { return "lasting" + std::to_string(i); }

  int jobs_;
  std::atomic<int> begun{0};
  std::atomic<int> stopped{0};
  std::atomic<bool> finish{false};
  std::unique_ptr<client::worker> worker_;
};

class Standby : public testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(kept.path() / "token") << pair.active().token("client");
    exec = std::make_unique<program_run>(
        LEASEHOLD,
        std::vector<std::string>{"--url", pair.urls(), "--token-file", kept.path() / "token",
                                 "exec", "--program", "p", "--opaque", "x", "--ttl", "9s", "--",
                                 "/bin/sleep", "300"},
        kept.path() / "exec");
    EXPECT_TRUE(eventually([&] { return lock(pair.active()).if_contains("state") != nullptr; }))
        << content_of(kept.path() / "exec");
  }

  static json::object lock(live_server& at) {
    return at.get("/v1/locks/default%2Fp%2Fopaque:x%2F%2F").body;
  }
  static std::string reason_of(const api_answer& said) {
    const auto* found = said.body.if_contains("reason");
    return found == nullptr ? "" : std::string(found->as_string());
  }

  /// Loads the active one, does `harm` to it, and expects that the other one serves in time.
  void expect_take_over(const std::string& what, const std::function<void()>& harm,
                        const std::function<void()>& undo) {
    auto load = std::make_unique<socket_load>(pair.active(), seen,
                                              load_options{.sessions = 24,
                                                           .threads = 1,
                                                           .life = ++life,
                                                           .seed = 7,
                                                           .submit_pause = milliseconds{2}});
    const std::size_t enough = seen.heard() + 2000;
    EXPECT_TRUE(eventually([&] { return seen.heard() >= enough; })) << pair.active().log();
    harm();
    const auto began = steady::now();
    EXPECT_TRUE(eventually([&] { return pair.standby().get("/readyz").status == 200; }))
        << pair.standby().log();
    const auto took = std::chrono::duration_cast<milliseconds>(steady::now() - began);
    EXPECT_LE(took, term + recovery) << what;
    std::cout << what << ": served again after " << took.count() << " ms\n";
    pair.swap();
    undo();
    load.reset();
    expect_standby();
    expect_nothing_lost();
    // The load goes on there.
    const socket_load more(
        pair.active(), seen,
        {.sessions = 4, .threads = 1, .life = ++life, .seed = 7, .submit_pause = milliseconds{2}});
    const std::size_t again = seen.heard() + 200;
    EXPECT_TRUE(eventually([&] { return seen.heard() >= again; }));
  }

  /// The one that served before says that it does not, and who does.
  void expect_standby() {
    auto& old = pair.standby();
    const auto address = pair.active().url().substr(7);
    EXPECT_TRUE(eventually([&] {
      const auto said = old.get("/v1/jobs");
      EXPECT_NE(said.status, 200);
      const auto* active = said.body.if_contains("active");
      return reason_of(said) == "standby" && active != nullptr && active->as_string() == address;
    })) << old.log();
    EXPECT_EQ(old.get("/healthz").status, 200);
    EXPECT_EQ(reason_of(old.get("/readyz")), "standby");
    EXPECT_NE(old.metrics().find("leasehold_role 0"), std::string::npos);
    EXPECT_NE(pair.active().metrics().find("leasehold_role 1"), std::string::npos);
  }

  /// How often it has begun again because it was deposed.
  static int lives_of(const live_server& of) {
    constexpr std::string_view text = "begins again as a standby";
    const auto log = of.log();
    int found = 0;
    for (auto at = log.find(text); at != log.npos; at = log.find(text, at + 1)) ++found;
    return found;
  }

  /// Asks for the lock, and for a new job.
  void send_late(test::raw_peer& reader, test::raw_peer& writer, const std::string& job) {
    const auto header = "Host: x\r\nAuthorization: Bearer " + pair.active().token("client");
    reader.send("GET /v1/locks/default%2Fp%2Fopaque:x%2F%2F HTTP/1.1\r\n" + header + "\r\n\r\n");
    const auto body =
        json::serialize(json::object{{"queue", "late"}, {"job_id", job}, {"payload", "x"}});
    writer.send("POST /v1/jobs HTTP/1.1\r\n" + header +
                "\r\nContent-Type: application/json\r\nContent-Length: " +
                std::to_string(body.size()) + "\r\n\r\n" + body);
  }

  void expect_nothing_lost() {
    const auto log = tests::read_postgres_log(pair.database.url());
    const auto lost = tests::loss_search(log, seen).run();
    EXPECT_TRUE(lost.empty()) << lost.size() << " losses, the first: " << lost.front();
    std::map<std::pair<std::string, std::int64_t>, std::set<std::string>> offered;
    for (const auto& told : seen.standings()) {
      if (!told.offered_to.empty()) offered[{told.lease, told.gen}].insert(told.offered_to);
    }
    for (const auto& [grant, holders] : offered) {
      EXPECT_EQ(holders.size(), 1U) << grant.first << " generation " << grant.second;
    }
  }

  two_coordinators pair;
  tests::temporary_directory kept;
  tests::driver_log seen;
  std::unique_ptr<program_run> exec;
  int life = 0;
};

TEST_F(Standby, ServesWithinATermWhenTheActiveOneIsKilledStoppedOrCutOff) {
  lasting_work work(pair, 3);
  for (int round = 0; round < rounds_wanted(); ++round) {
    expect_take_over(
        "killed", [&] { pair.active().kill(); }, [&] { pair.standby().start(); });

    // What is sent to one that stands still is read when it wakes.
    std::optional<test::raw_peer> reader;
    std::optional<test::raw_peer> writer;
    int lives = 0;
    const std::string late = "late" + std::to_string(round);
    expect_take_over(
        "stopped",
        [&] {
          lives = lives_of(pair.active());
          reader.emplace(pair.active().port());
          writer.emplace(pair.active().port());
          pair.active().stand_still();
          send_late(*reader, *writer, late);
        },
        [&] {
          pair.standby().go_on();
          for (auto* peer : {&*reader, &*writer}) {
            const auto said = peer->read_until("\r\n\r\n").value_or("");
            EXPECT_TRUE(said.empty() || said.starts_with("HTTP/1.1 503")) << said;
          }
          EXPECT_TRUE(eventually([&] { return lives_of(pair.standby()) > lives; }));
        });
    EXPECT_EQ(pair.active().get("/v1/jobs/" + late).status, 404) << "a deposed one took a job";

    expect_take_over(
        "cut off",
        [&] {
          lives = lives_of(pair.active());
          pair.way_of_active().set_link(proxy_link::silent);
        },
        [&] {
          EXPECT_TRUE(eventually([&] { return lives_of(pair.standby()) > lives; }));
          for (auto& way : pair.ways) way.heal();
        });
  }

  work.expect_unharmed(pair.active());
  EXPECT_EQ(lock(pair.active()).at("state"), "active");
  EXPECT_EQ(lock(pair.active()).at("generation"), 1);
  exec->signal(SIGTERM);
  EXPECT_TRUE(exec->wait());
  const auto proven = run_leasehold({"verify", "--store", pair.database.url()});
  EXPECT_EQ(proven.exit_code, 0) << proven.output;
}

TEST_F(Standby, TakesOverAtOnceWhenTheActiveOneEndsInOrder) {
  const auto began = steady::now();
  pair.active().signal(SIGTERM);
  EXPECT_EQ(pair.active().wait_for_end(), 0);
  const auto ended = steady::now();
  EXPECT_TRUE(eventually([&] { return pair.standby().get("/readyz").status == 200; }));
  EXPECT_LT(steady::now() - ended, term) << "the epoch was not given back";
  EXPECT_LT(ended - began, std::chrono::seconds(15));
  pair.swap();
  EXPECT_TRUE(eventually([&] {
    const auto held = lock(pair.active());
    return held.if_contains("state") != nullptr && held.at("state") == "active";
  }));
}

}  // namespace
}  // namespace leasehold::e2e
