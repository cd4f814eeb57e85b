// Locks through the real server: over HTTP and over streams, across kills, and ten thousand who
// wait for one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "live_server.hpp"
#include "src/keys/normalise.hpp"
#include "stream_peer.hpp"

namespace leasehold::e2e {
namespace {

using protocol::reason;

class locks : public on_threads {
 protected:
  live_server server{GetParam(),
                     {"--stream-frames-per-second", "0", "--stream-bytes-per-second", "0B"}};
};
LEASEHOLD_ON_THREADS(locks);

json::object asked(const std::string& target, const json::object& more = {}) {
  json::object body{{"program", "p"}, {"target", {{"opaque", target}}}};
  for (const auto& each : more) body[each.key()] = each.value();
  return body;
}

std::string lock_id(const std::string& target) {
  protocol::lock_name name{"p", protocol::target_kind::opaque, target, "", ""};
  return keys::lock_lease_id(protocol::canonical_key(protocol::tenant_id{"default"}, name)).value;
}

protocol::acquire acquire_frame(const stream_peer& peer, const std::string& target,
                                const std::string& request, std::int64_t wait_ms,
                                std::int64_t ttl_ms = 30'000) {
  protocol::acquire frame;
  frame.what.kind = protocol::event_kind::acquire;
  frame.what.from = peer.holder();
  frame.what.sent_at = peer.now();
  frame.what.request = protocol::request_id{request};
  frame.name = {"p", protocol::target_kind::opaque, target, "", ""};
  frame.wait = {wait_ms};
  frame.ttl = {ttl_ms};
  return frame;
}

TEST_P(locks, HaveOneHolderWhoseAnswerOutlivesAKill) {
  const auto first = server.post("/v1/locks:acquire", asked("x", {{"request_id", "r1"},
                                                                  {"ttl_ms", 60'000},
                                                                  {"execution_id", "run-7"},
                                                                  {"metadata", {{"a", "b"}}}}));
  ASSERT_EQ(first.status, 201) << first.text;
  EXPECT_EQ(first.body.at("lock").at("fencing_token").as_int64(), 1);
  EXPECT_EQ(first.body.at("lock").at("lease_id").as_string(), lock_id("x"));
  const auto other = server.post("/v1/locks:acquire", asked("x"));
  EXPECT_EQ(other.status, 409);
  EXPECT_EQ(other.body.at("reason").as_string(), "already_held");
  server.kill();
  server.start();
  const auto again = server.post("/v1/locks:acquire", asked("x", {{"request_id", "r1"}}));
  EXPECT_EQ(again.status, 200) << again.text;
  EXPECT_EQ(again.body.at("reason").as_string(), "duplicate_request");
  EXPECT_EQ(again.body.at("grant").at("generation").as_int64(), 1);
  EXPECT_TRUE(again.body.at("grant").at("holds").as_bool());
  EXPECT_EQ(again.body.at("lock").at("execution_id").as_string(), "run-7");
  EXPECT_EQ(again.body.at("lock").at("metadata").at("a").as_string(), "b");
  const json::object holder{
      {"lease_id", lock_id("x")}, {"holder", "client/default"}, {"generation", 1}};
  auto renew = holder;
  renew["sequence"] = 1;
  EXPECT_EQ(server.post("/v1/locks:renew", renew).body.at("reason").as_string(), "renewed");
  EXPECT_EQ(server.post("/v1/locks:release", holder).status, 200);
  EXPECT_EQ(server.post("/v1/locks:renew", renew).status, 410);
  EXPECT_EQ(
      server.post("/v1/locks:acquire", asked("x")).body.at("grant").at("generation").as_int64(), 2);
  expect_proven(server);
}

TEST_P(locks, RememberEveryRequestOfTenMinutesAcrossAKill) {
  const auto numbered = [](const char* kind, int number) {
    return std::string(kind) + std::to_string(number);
  };
  const auto take = [&](int number) {
    return server.post("/v1/locks:acquire", asked("x", {{"request_id", numbered("r", number)}}));
  };
  const auto give = [&](int number) {
    return server.post("/v1/locks:release", {{"lease_id", lock_id("x")},
                                             {"holder", "client/default"},
                                             {"generation", number},
                                             {"request_id", numbered("g", number)}});
  };
  for (int i = 1; i <= 80; ++i) {
    ASSERT_EQ(take(i).status, 201);
    ASSERT_EQ(give(i).status, 200);
  }
  server.kill();
  server.start();
  for (const int i : {1, 2, 47, 48, 49, 80}) {
    const auto taken = take(i);
    EXPECT_EQ(taken.body.at("reason").as_string(), "duplicate_request") << i;
    EXPECT_EQ(taken.body.at("grant").at("generation").as_int64(), i);
    EXPECT_FALSE(taken.body.at("grant").at("holds").as_bool());
    EXPECT_EQ(give(i).body.at("reason").as_string(), "duplicate_request") << i;
  }
  const auto another =
      server.post("/v1/locks:acquire", asked("x", {{"request_id", "r1"}, {"instance", "another"}}));
  EXPECT_EQ(another.status, 422) << another.text;
  EXPECT_EQ(take(81).body.at("lock").at("fencing_token").as_int64(), 81);
}

TEST_P(locks, AreRevokedByAnOperatorAndTheirHolderHearsOfIt) {
  stream_peer worker(server, "w1");
  worker.hello();
  worker.say(acquire_frame(worker, "x", "r1", 0));
  ASSERT_TRUE(worker.await<protocol::frame_verdict>());
  const json::object body{{"lease_id", lock_id("x")}, {"force", true}, {"detail", "maintenance"}};
  EXPECT_EQ(server.post("/v1/locks:revoke", body).status, 403);
  EXPECT_EQ(server.post("/v1/locks:revoke", body, "operator").status, 200);
  const auto lost = worker.loss_of(lock_id("x"));
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->lost.why, protocol::loss::revoked);
  const auto lines = server.get("/v1/locks/" + lock_id("x") + "/evidence").text;
  EXPECT_NE(lines.find("maintenance"), std::string::npos);
  EXPECT_EQ(server.get("/v1/fences/" + lock_id("x") + "?token=1").body.at("live").as_bool(), false);
}

TEST_P(locks, ThatTwoClaimAreResolvedByAnOperator) {
  server.signal(SIGTERM);
  ASSERT_EQ(server.wait_for_end(), 0);
  server.start({"--policy-on-conflict", "freeze"});
  const std::string id = lock_id("x");
  server.post("/v1/locks:acquire", asked("x", {{"instance", "a"}, {"ttl_ms", 60'000}}));
  const auto renew = [&](const char* holder, int sequence) {
    return server.post(
        "/v1/locks:renew",
        {{"lease_id", id}, {"holder", holder}, {"generation", 1}, {"sequence", sequence}});
  };
  EXPECT_EQ(renew("client/b", 1).body.at("reason").as_string(), "ownership_conflict");
  EXPECT_EQ(renew("client/a", 1).body.at("reason").as_string(), "lease_frozen");
  json::object body{{"lease_id", id}, {"holder", "client/b"}};
  EXPECT_EQ(server.post("/v1/locks:resolve", body).status, 403);
  EXPECT_EQ(server.post("/v1/locks:resolve", body, "operator").status, 412);
  body["holder"] = "client/a";
  const auto resolved = server.post("/v1/locks:resolve", body, "operator");
  EXPECT_EQ(resolved.body.at("reason").as_string(), "conflict_resolved") << resolved.text;
  EXPECT_EQ(renew("client/a", 1).body.at("reason").as_string(), "renewed");
  EXPECT_EQ(server.post("/v1/locks:resolve", body, "operator").body.at("reason").as_string(),
            "no_conflict");
}

TEST_P(locks, AreReadByTheirKeyAndAnothersTenantKnowsNothing) {
  server.post("/v1/locks:acquire", asked("a/b"));
  EXPECT_EQ(server.get("/v1/locks/default%2Fp%2Fopaque:a%252Fb%2F%2F").status, 200);
  EXPECT_EQ(server.get("/v1/locks/not-a-key").status, 400);
  EXPECT_EQ(server.get("/v1/locks/" + lock_id("a/b"), "keeper").status, 404);
  EXPECT_EQ(server.get("/v1/jobs/" + lock_id("a/b")).status, 404);
  EXPECT_EQ(server.get("/v1/locks?target=opaque:a%2Fb").body.at("locks").as_array().size(), 1U);
  EXPECT_TRUE(server.get("/v1/locks?owner=nobody").body.at("locks").as_array().empty());
}

/// The gauge of open connections, as a line of the metrics.
std::string connections(live_server& server) {
  const auto page = server.metrics();
  const auto at = page.find("\nleasehold_connections ") + 1;
  return page.substr(at, page.find('\n', at) - at);
}

/// Whether the metrics come to have this line.
bool shows(live_server& server, const std::string& line) {
  return eventually([&] { return server.metrics().find('\n' + line + '\n') != std::string::npos; });
}

/// The request of a client that waits for the lock a minute.
std::string waiting_request(live_server& server) {
  const std::string body = json::serialize(asked("x", {{"wait_ms", 60'000}, {"instance", "left"}}));
  return "POST /v1/locks:acquire HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " +
         server.token("client") +
         "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

/// The first holder gives the lock back, and whoever asks then has it.
void expect_next_has_it(live_server& server) {
  server.post("/v1/locks:release",
              {{"lease_id", lock_id("x")}, {"holder", "client/default"}, {"generation", 1}});
  const auto next = server.post("/v1/locks:acquire", asked("x", {{"instance", "stays"}}));
  EXPECT_EQ(next.status, 201) << next.text;
  EXPECT_EQ(next.body.at("grant").at("generation").as_int64(), 2);
}

TEST_P(locks, AreNotGivenToAClientThatWentAway) {
  server.post("/v1/locks:acquire", asked("x"));
  server.metrics();  // by a connection of its own, which stays
  const auto without = connections(server);
  {
    test::raw_peer leaves(server.port());
    leaves.send(waiting_request(server));
    ASSERT_TRUE(shows(server, "leasehold_lock_waiters 1"));
    ASSERT_NE(connections(server), without);
    leaves.reset();  // at an end in good order its answer would be waited for
  }
  ASSERT_TRUE(shows(server, without));
  expect_next_has_it(server);
}

TEST_P(locks, AreNotGivenToAClientThatWentAwayBehindMuchThatIsUnread) {
  server.post("/v1/locks:acquire", asked("x"));
  {
    test::raw_peer leaves(server.port());
    leaves.send(waiting_request(server));
    ASSERT_TRUE(shows(server, "leasehold_lock_waiters 1"));
    leaves.send(std::string(30'000, 'x'));
    server.metrics();  // read by now, as far as it is read at all
    leaves.reset();
  }
  expect_next_has_it(server);
}

/// LEASEHOLD_WAITERS: how many; fewer are enough to see the order.
std::int64_t waiters() {
  const char* chosen = std::getenv("LEASEHOLD_WAITERS");
  return chosen == nullptr ? 1000 : std::max<std::int64_t>(1000, std::atoll(chosen) / 1000 * 1000);
}

/// A lock remembers requests whoever they were of.
std::string request_of(std::int64_t stream, std::int64_t number) {
  return std::to_string(stream) + "." + std::to_string(number);
}

/// Ten streams, of which each waits for the lock many times at once.
TEST_P(locks, AreGrantedToThousandsOfWaitersOneByOneInTheOrderOfTheirRows) {
  constexpr std::int64_t streams = 10;
  const std::int64_t waits = waiters() / streams;
  stream_peer holder(server, "w1", 'f');
  holder.hello();
  const auto first = holder.say(acquire_frame(holder, "x", "first", 0));
  ASSERT_EQ(holder.verdict_of(first)->reason, reason::acquired);

  std::vector<std::unique_ptr<stream_peer>> peers;
  std::vector<std::int64_t> first_frames;
  for (std::int64_t i = 0; i < streams; ++i) {
    peers.push_back(std::make_unique<stream_peer>(server, "w2", static_cast<char>('0' + i)));
    peers.back()->hello();
    std::vector<frame_body> bodies;
    first_frames.push_back(0);
    for (std::int64_t n = 0; n < waits; ++n) {
      bodies.emplace_back(acquire_frame(*peers.back(), "x", request_of(i, n), 500'000));
      if (bodies.size() < 100) continue;
      const auto id = peers.back()->say_all(std::exchange(bodies, {}));
      if (first_frames.back() == 0) first_frames.back() = id;
    }
    for (std::int64_t n = 0; n < waits; ++n) {
      const auto verdict = peers.back()->await<protocol::frame_verdict>();
      ASSERT_TRUE(verdict) << i << " " << n;
      ASSERT_EQ(verdict->reason, reason::awaiting_grant);
    }
  }
  // One stream closes with all its waits, and another gives up every second one of its own: those
  // never get the lock.
  peers.back()->vanish();
  peers.pop_back();
  auto& fickle = *peers.back();
  std::vector<frame_body> stops;
  std::set<std::int64_t> stopped;
  for (std::int64_t n = 1; n < waits; n += 2) {
    stopped.insert(first_frames[peers.size() - 1] + n);
    stops.emplace_back(protocol::stop_waiting{acquire_frame(fickle, "x", "r", 0).name,
                                              first_frames[peers.size() - 1] + n});
    if (stops.size() == 100) fickle.say_all(std::exchange(stops, {}));
  }
  fickle.say_all(std::move(stops));
  for (std::size_t n = 0; n < stopped.size(); ++n) {
    const auto verdict = fickle.await<protocol::frame_verdict>();
    ASSERT_TRUE(verdict);
    ASSERT_EQ(verdict->reason, reason::wait_deadline_passed);
    ASSERT_TRUE(stopped.contains(verdict->answers));
  }
  // The server knows of the closed stream once its session is gone.
  ASSERT_TRUE(shows(server, "leasehold_sessions 10"));

  auto release = [](stream_peer& by, std::int64_t gen) {
    by.say(by.frame(protocol::event_kind::release, lock_id("x"), gen));
  };
  release(holder, 1);
  std::int64_t gen = 1;
  std::int64_t row = 0;
  std::int64_t granted = 0;
  std::int64_t stream = -1;
  for (auto& peer : peers) {
    ++stream;
    const bool gives_up = peer.get() == &fickle;
    for (std::int64_t n = 0; n < waits; n += gives_up ? 2 : 1) {
      const auto grant = peer->await<protocol::granted>();
      ASSERT_TRUE(grant) << "grant " << granted;
      // First come, first served: the requests of a stream in their order, the streams in theirs.
      ASSERT_EQ(grant->request.value, request_of(stream, n));
      ASSERT_EQ(grant->standing.gen.value, ++gen);
      ASSERT_GT(grant->standing.row.value, row);
      row = grant->standing.row.value;
      ++granted;
      release(*peer, gen);
    }
  }
  EXPECT_EQ(granted, (streams - 2) * waits + waits / 2);
  EXPECT_NE(server.metrics().find("leasehold_lock_waiters 0\n"), std::string::npos);
  const auto commits = server.metrics();
  constexpr std::string_view counter = "\nleasehold_store_commits_total ";
  const auto at = commits.find(counter);
  ASSERT_NE(at, std::string::npos);
  const auto total = std::stoll(commits.substr(at + counter.size()));
  EXPECT_LE(total, 2 * granted + 100) << "a commit for each release, and one for each grant";
  const auto seen = server.get("/v1/fences/" + lock_id("x") + "?observed").body;
  EXPECT_EQ(seen.at("observed").as_int64(), gen);
}

}  // namespace
}  // namespace leasehold::e2e
