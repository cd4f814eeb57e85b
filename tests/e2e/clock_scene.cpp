#include "clock_scene.hpp"

#include <sqlite3.h>

#include <memory>

namespace leasehold::e2e {

using protocol::event_kind;
using protocol::reason;

std::vector<stored_anchor> anchors_of(const live_server& server) {
  sqlite3* opened = nullptr;
  const auto file = (server.data() / "leasehold.db").string();
  const int code = sqlite3_open_v2(file.c_str(), &opened, SQLITE_OPEN_READONLY, nullptr);
  const std::unique_ptr<sqlite3, decltype(&sqlite3_close)> db(opened, &sqlite3_close);
  EXPECT_EQ(code, SQLITE_OK) << file;
  sqlite3_busy_timeout(opened, 10'000);
  sqlite3_stmt* made = nullptr;
  EXPECT_EQ(sqlite3_prepare_v2(opened,
                               "SELECT boot_id, boottime_ms, wall_ms, coordinator_ms FROM batch "
                               "ORDER BY first_row",
                               -1, &made, nullptr),
            SQLITE_OK)
      << sqlite3_errmsg(opened);
  const std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)> query(made, &sqlite3_finalize);
  std::vector<stored_anchor> found;
  while (sqlite3_step(made) == SQLITE_ROW) {
    found.push_back({reinterpret_cast<const char*>(sqlite3_column_text(made, 0)),
                     sqlite3_column_int64(made, 1), sqlite3_column_int64(made, 2),
                     sqlite3_column_int64(made, 3)});
  }
  EXPECT_FALSE(found.empty());
  return found;
}

stream_peer clock_scene::worker_of(live_server& server) {
  stream_peer worker(server, "w1");
  worker.hello();
  worker.credit(50);
  return worker;
}

void clock_scene::begin(live_server& server, stream_peer& worker, const std::string& job,
                        milliseconds lasts, const json::object& more) {
  json::object policy = more;
  policy["lease_duration_ms"] = lasts.count();
  server.submit(job, policy);
  const auto offer = worker.offer_of(job);
  ASSERT_TRUE(offer);
  worker.start(job, offer->standing.gen.value);
}

void clock_scene::begin_mortal(live_server& server, stream_peer& worker, const std::string& job,
                               milliseconds lasts) {
  begin(server, worker, job, lasts, {{"on_expiry", "fail"}, {"recovery_grace_ms", 0}});
}

void clock_scene::expect_renewed(live_server& server, stream_peer& worker, const std::string& job,
                                 std::int64_t sequence) {
  const auto before = coordinator_now(server);
  EXPECT_EQ(worker.tell(worker.frame(event_kind::renew, job, 1, sequence)).reason, reason::renewed);
  const auto after = coordinator_now(server);
  const auto row = last_row(server.evidence(job), "renew");
  const auto at = row.at("at").as_int64();
  EXPECT_GE(at, before);
  EXPECT_LE(at, after);
  EXPECT_EQ(row.at("expires_at").as_int64(), at + row.at("lease_duration").as_int64());
}

std::int64_t expires_at(live_server& server, const std::string& job) {
  return server.job(job).at("expires_at").as_int64();
}

json::object expect_expired_at_its_deadline(live_server& server, const std::string& job) {
  std::int64_t deadline = 0;
  int expiries = 0;
  for (const auto& row : server.evidence(job)) {
    const auto& event = row.at("event").as_string();
    if (event == "activate" || event == "renew" || event == "offer") {
      deadline = row.at("expires_at").as_int64();
    }
    if (event != "expire") continue;
    ++expiries;
    expect_columns(row, {{"at", deadline}, {"expires_at", deadline}});
    EXPECT_GE(row.at("fired_at").as_int64(), deadline);
  }
  EXPECT_EQ(expiries, 1) << job;
  return last_row(server.evidence(job), "expire");
}

void expect_one_clock(const std::vector<stored_anchor>& anchors, std::size_t first) {
  for (auto i = first; i < anchors.size(); ++i) {
    EXPECT_EQ(anchors[i].boot_id, anchors[first].boot_id);
    EXPECT_EQ(anchors[i].origin_ms(), anchors[first].origin_ms()) << "batch " << i;
  }
}

void expect_basis(const live_server& server, const std::string& basis) {
  const auto log = server.log();
  const auto last = log.rfind("\"event\":\"listening\"");
  ASSERT_NE(last, std::string::npos) << log;
  EXPECT_NE(log.find("\"clock\":\"" + basis + "\"", last), std::string::npos) << log;
}

}  // namespace leasehold::e2e
