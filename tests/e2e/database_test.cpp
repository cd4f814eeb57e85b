// The real server on a PostgreSQL database that is slow, or that may not be used.
#include <gmock/gmock.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "stream_peer.hpp"
#include "support/postgres_programs.hpp"
#include "support/postgres_proxy.hpp"
#include "support/postgres_server.hpp"

namespace leasehold::e2e {
namespace {

using namespace std::chrono_literals;
using protocol::event_kind;
using protocol::reason;
using std::chrono::steady_clock;

std::int64_t resident_kilobytes(pid_t process) {
  std::ifstream in("/proc/" + std::to_string(process) + "/status");
  for (std::string word; in >> word;) {
    std::int64_t size = 0;
    if (word == "VmRSS:" && in >> size) return size;
  }
  return 0;
}

class Database : public testing::Test {
 protected:
  [[nodiscard]] std::vector<std::string> store_arguments() const {
    return {"--store", database.url("postgres", proxy.directory())};
  }
  void slow_down(std::chrono::milliseconds each_commit) {
    tests::proxy_fault slow;
    slow.matches = tests::is_commit;
    slow.passes = true;
    slow.ends = false;
    slow.lasts = true;
    slow.delay = each_commit;
    proxy.set(std::move(slow));
  }

  tests::postgres_server database;
  tests::postgres_proxy proxy{database.socket()};
};

TEST_F(Database, ThatIsSlowExpiresNoLeaseThatWasRenewedInTime) {
  live_server server(2, store_arguments());
  stream_peer worker(server, "w1");
  worker.hello();
  worker.credit(1);
  server.submit("j", {{"lease_duration_ms", 3'000}});
  ASSERT_TRUE(worker.offer_of("j"));
  worker.start("j", 1);
  slow_down(2s);
  const auto from = steady_clock::now();
  // Each renew is said in time; that it is durable is known up to four seconds later.
  std::vector<std::int64_t> said;
  for (int i = 1; steady_clock::now() - from < 10s; ++i) {
    said.push_back(worker.say(worker.frame(event_kind::renew, "j", 1, i)));
    std::this_thread::sleep_for(500ms);
  }
  for (const auto each : said) {
    const auto verdict = worker.verdict_of(each);
    ASSERT_TRUE(verdict);
    EXPECT_EQ(verdict->decision, protocol::decision::accepted) << word(verdict->reason);
  }
  proxy.heal();
  EXPECT_TRUE(server.reaches("j", "active")) << server.log();
  for (const auto& row : server.evidence("j")) EXPECT_NE(row.at("event").as_string(), "expire");
}

TEST_F(Database, ThatIsSlowIsWaitedForInABoundedQueueAndRefusalsMayBeRepeated) {
  live_server server(2, store_arguments());
  server.submit("first");
  slow_down(2s);
  constexpr std::size_t submitters = 32;
  const auto until = steady_clock::now() + 10s;
  std::atomic<int> taken{0};
  std::atomic<int> refused{0};
  std::atomic<int> other{0};
  std::int64_t half_way = 0;
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < submitters; ++t) {
      threads.emplace_back([&, t] {
        tools::client_options chosen;
        chosen.where = {.tls = false, .host = "127.0.0.1", .port = std::to_string(server.port())};
        chosen.token = server.token("client");
        tools::http_client client(std::move(chosen));
        for (int i = 0; steady_clock::now() < until; ++i) {
          const json::object body{{"queue", "idle"},
                                  {"job_id", "s" + std::to_string(t) + "-" + std::to_string(i)},
                                  {"payload", std::string(20'000, 'x')}};
          const auto answer =
              client.call({.method = "POST", .target = "/v1/jobs", .body = json::serialize(body)});
          const auto* got = std::get_if<tools::http_answer>(&answer);
          const int status = got == nullptr ? 0 : got->status;
          ++(status == 201 ? taken : status == 429 || status == 503 ? refused : other);
        }
      });
    }
    std::this_thread::sleep_for(5s);
    half_way = resident_kilobytes(server.process());
  }
  const auto at_the_end = resident_kilobytes(server.process());
  std::cout << taken << " taken, " << refused << " refused, " << half_way << " KiB and then "
            << at_the_end << "\n";
  EXPECT_GT(taken, 0);
  EXPECT_EQ(other, 0);
  // What was taken stays in memory, and nothing else.
  EXPECT_LT(at_the_end - half_way, 16 * 1024 + 40 * taken.load());
  proxy.heal();
  server.submit("last");
}

/// A pgbouncer in front of the database.
class pooler {
 public:
  pooler(const tests::postgres_server& before, const std::string& mode) {
    std::ofstream(place_.path() / "pgbouncer.ini")
        << "[databases]\n* = host=" << before.directory().string() << " port=5432 user=sandbox\n"
        << "[pgbouncer]\nlisten_addr =\nlisten_port = 5432\nauth_type = any\nunix_socket_dir = "
        << place_.path().string() << "\npool_mode = " << mode << "\n";
    const auto& programs = tests::postgres_programs::of_this_machine();
    programs.give(place_.path());
    process_ =
        programs.run("/usr/sbin/pgbouncer", {"-q", (place_.path() / "pgbouncer.ini").string()},
                     place_.path() / "log");
    EXPECT_TRUE(eventually([this] {
      return std::filesystem::exists(place_.path() / ".s.PGSQL.5432");
    })) << content_of(place_.path() / "log");
  }
  [[nodiscard]] const std::filesystem::path& directory() const { return place_.path(); }

 private:
  tests::temporary_directory place_;
  std::unique_ptr<program_run> process_;
};

TEST_F(Database, BehindAPoolerThatSharesSessionsIsRefusedAtTheStart) {
  live_server server(2);
  server.kill();
  for (const std::string mode : {"transaction", "statement"}) {
    const pooler shared(database, mode);
    const auto end =
        server.start_in_vain({"--store", database.url("postgres", shared.directory())});
    EXPECT_EQ(end.exit_code, 1) << mode;
    EXPECT_THAT(end.output, testing::HasSubstr("pool"));
  }
  const pooler own(database, "session");
  server.start_with({"--store", database.url("postgres", own.directory())});
  server.submit("j");
}

TEST_F(Database, ThatIsNotThereIsSaidWithoutItsPasswordAndWaitedFor) {
  live_server server(2);
  server.kill();
  {
    const std::jthread late([&] {
      EXPECT_TRUE(eventually([&] {
        return server.log().find("does not exist") != std::string::npos;
      })) << server.log();
      database.make_database("nowhere");
    });
    server.start_with({"--store", "postgres://sandbox:canary-3f7@/nowhere?host=" +
                                      database.directory().string()});
  }
  server.submit("j");
  EXPECT_THAT(server.log(), testing::Not(testing::HasSubstr("canary-3f7")));
}

}  // namespace
}  // namespace leasehold::e2e
