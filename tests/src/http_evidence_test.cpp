// Evidence over HTTP and its live reader, over a log that was made through the rules.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "src/event_stream.hpp"
#include "src/store/evidence_json.hpp"
#include "support/api_rig.hpp"

namespace leasehold::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using tests::api_rig;
using tests::fake_socket;

/// Writes the history of jobs into the rig's store, as the actors do.
class history {
 public:
  explicit history(api_rig& rig) : rig_(rig) {
    protocol::stored_row r;
    r.policy = protocol::id_of(policy_);
    r.at = {1};
    r.input.kind = protocol::event_kind::policy;
    r.answer = {protocol::decision::applied, protocol::reason::none, {}, {}};
    r.attachment = protocol::canonical_text(policy_);
    commit(protocol::encode_row(r), 1);
  }

  void submit(const std::string& tenant, const std::string& id, const std::string& queue = "q") {
    actors::job_spec spec;
    spec.queue = queue;
    spec.payload = "secret";
    protocol::event e;
    e.kind = protocol::event_kind::submit;
    e.job = protocol::job_id(id);
    judge(tenant, id, e, actors::encode_job(spec));
  }
  void offer(const std::string& tenant, const std::string& id, const std::string& holder) {
    protocol::event e;
    e.kind = protocol::event_kind::offer;
    e.job = protocol::job_id(id);
    e.from = protocol::holder(holder);
    judge(tenant, id, e);
  }
  void cancel(const std::string& tenant, const std::string& id, const std::string& why) {
    protocol::event e;
    e.kind = protocol::event_kind::cancel;
    e.detail = why;
    judge(tenant, id, e);
  }
  protocol::row_number last() const { return last_; }

 private:
  struct lease {
    protocol::record state;
    protocol::row_number row;
  };
  void judge(const std::string& tenant, const std::string& id, protocol::event e,
             std::string attached = {}) {
    const protocol::lease_key key{protocol::tenant_id(tenant), protocol::lease_id(id)};
    e.lease = key.lease;
    lease& l = leases_[key];
    now_.ms += 10;
    protocol::row_group group(key, protocol::id_of(policy_), l.row, now_, {});
    if (!attached.empty()) group.attach(std::move(attached));
    protocol::step(l.state, policy_, e, now_, group);
    const std::int64_t count = group.count();
    commit(group.take_bytes(), count);
    l.row = last_;
  }
  void commit(std::string bytes, std::int64_t rows) {
    actors::batch b;
    b.groups.push_back(std::move(bytes));
    b.rows = rows;
    rig_.store->commit(std::move(b), [](const auto&) {});
    last_.value += rows;
  }

  api_rig& rig_;
  protocol::policy policy_;
  std::map<protocol::lease_key, lease> leases_;
  protocol::instant now_{1000};
  protocol::row_number last_;
};

class http_evidence_test : public testing::Test {
 protected:
  static std::vector<boost::json::object> lines(const std::string& body) {
    std::vector<boost::json::object> out;
    std::istringstream in(body);
    for (std::string line; std::getline(in, line);) {
      out.push_back(boost::json::parse(line).as_object());
    }
    return out;
  }
  static std::vector<std::int64_t> rows(const std::string& body) {
    std::vector<std::int64_t> out;
    for (const auto& line : lines(body)) out.push_back(line.at("row").as_int64());
    return out;
  }
  void know(const std::string& tenant, const std::string& id, protocol::row_number row) {
    rig.gateway.add_job(tenant, id).row = row;
  }

  api_rig rig;
  history log{rig};
};

TEST_F(http_evidence_test, AJobsEvidenceIsItsRowsWithTheRecordAfterEach) {
  log.submit("t", "a");
  log.submit("t", "b");
  log.offer("t", "a", "w/1");
  know("t", "a", log.last());
  const auto response = rig.ask("GET", "/v1/jobs/a/evidence", "auditor");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(api_rig::header(response, "Content-Type"), "application/x-ndjson");
  const auto all = lines(response.body);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].at("event"), "submit");
  EXPECT_EQ(all[0].at("state"), "vacant");
  EXPECT_EQ(all[1].at("event"), "offer");
  EXPECT_EQ(all[1].at("state"), "offered");
  EXPECT_EQ(all[1].at("holder_identity"), "w/1");
  EXPECT_EQ(all[1].at("prev_row"), all[0].at("row"));
  EXPECT_THAT(response.body, Not(HasSubstr("secret")));
}

TEST_F(http_evidence_test, CsvHasEveryColumnAndNoFormula) {
  log.submit("t", "a");
  log.cancel("t", "a", "=1+1, \"x\"");
  know("t", "a", log.last());
  auto request = api_rig::request("GET", "/v1/jobs/a/evidence", "operator");
  request.headers.emplace_back("accept", "text/csv");
  const auto response = rig.ask(request);
  EXPECT_THAT(api_rig::header(response, "Content-Type"), HasSubstr("text/csv"));
  EXPECT_THAT(api_rig::header(response, "Content-Disposition"), HasSubstr("attachment"));
  const std::string head = response.body.substr(0, response.body.find("\r\n"));
  EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(head, ',')) + 1,
            protocol::replay_columns().size() + protocol::live_columns().size());
  EXPECT_THAT(response.body, HasSubstr(R"("'=1+1, ""x""")"));
}

TEST_F(http_evidence_test, ATenantsExportHasItsRowsAndThoseOfTheStore) {
  log.submit("t", "a");
  log.submit("u", "theirs");
  log.submit("t", "b");
  const auto response = rig.ask("GET", "/v1/evidence", "auditor");
  EXPECT_THAT(rows(response.body), ElementsAre(1, 2, 4));
  EXPECT_EQ(api_rig::header(response, "Leasehold-Next-Row"), "5");
  EXPECT_THAT(response.body, Not(HasSubstr("theirs")));
  EXPECT_EQ(rig.ask("GET", "/v1/evidence?from=5", "auditor").body, "");
}

TEST_F(http_evidence_test, AnExportCanBeginAnywhereAndPageByPageIsTheSame) {
  for (const char* id : {"a", "b", "c"}) log.submit("t", id);
  for (const char* id : {"a", "b", "c"}) log.offer("t", id, "w/1");
  const std::string whole = rig.ask("GET", "/v1/evidence", "auditor").body;
  std::string paged;
  std::string from = "1";
  while (true) {
    const auto page = rig.ask("GET", "/v1/evidence?limit=2&from=" + from, "auditor");
    if (page.body.empty()) break;
    paged += page.body;
    from = api_rig::header(page, "Leasehold-Next-Row");
  }
  EXPECT_EQ(paged, whole);
  const auto tail = rig.ask("GET", "/v1/evidence?from=6", "auditor").body;
  EXPECT_TRUE(whole.ends_with(tail));
  EXPECT_EQ(lines(tail).at(0).at("state"), "offered");
}

TEST_F(http_evidence_test, ATenantWithoutRowsReachesTheEndPastThoseOfOthers) {
  for (int i = 0; i < 5; ++i) log.submit("t", "j" + std::to_string(i));
  EXPECT_THAT(rows(rig.ask("GET", "/v1/evidence?from=2&limit=1", "stranger").body), ElementsAre());
}

TEST_F(http_evidence_test, TheHeadNamesTheLastRowAndItsHash) {
  log.submit("t", "a");
  const auto head = api_rig::json(rig.ask("GET", "/v1/head", "auditor"));
  EXPECT_EQ(head.at("row"), 2);
  EXPECT_EQ(head.at("hash").as_string().size(), 64U);
}

TEST_F(http_evidence_test, EveryLineIsReadBackAsTheRowItWas) {
  log.submit("t", "a");
  log.offer("t", "a", "w/1");
  std::istringstream in(rig.ask("GET", "/v1/evidence", "auditor").body);
  protocol::fold fold;
  for (std::string line; std::getline(in, line);) {
    const auto read = storage::read_evidence_line(line);
    ASSERT_TRUE(std::holds_alternative<storage::evidence_line>(read)) << line;
    const auto& got = std::get<storage::evidence_line>(read);
    if (got.chosen) fold.learn(protocol::id_of(*got.chosen), *got.chosen);
    if (got.row.key.lease.empty()) continue;
    const auto wrong = fold.feed(got.row);
    EXPECT_FALSE(wrong) << wrong->sentence;
  }
  const auto* a = fold.find({protocol::tenant_id("t"), protocol::lease_id("a")});
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->state.state, protocol::lease_state::offered);
}

class events_test : public http_evidence_test {
 protected:
  std::shared_ptr<socket_events> watch(const std::string& query,
                                       const std::string& token = "auditor") {
    auto answer = rig.http->upgrade(api_rig::request("GET", "/v1/events" + query, token));
    auto* accepted = std::get_if<upgrade_accepted>(&answer);
    EXPECT_NE(accepted, nullptr);
    return accepted == nullptr ? nullptr : accepted->start(wire);
  }
  /// As the journal tells after a commit.
  void tell() {
    for (const auto& [id, hear] : rig.gateway.watches) hear(log.last());
  }
  void await_messages(std::size_t count) {
    rig.run_until([&] { return wire->sent.size() >= count; });
    ASSERT_EQ(wire->sent.size(), count);
  }
  std::int64_t row(std::size_t i) const {
    return boost::json::parse(wire->sent.at(i)).at("row").as_int64();
  }

  std::shared_ptr<fake_socket> wire = std::make_shared<fake_socket>();
};

TEST_F(events_test, AReaderResumesFromARowAndThenHearsWhatComes) {
  log.submit("t", "a");
  log.submit("u", "theirs");
  const auto events = watch("?from=2");
  await_messages(1);
  EXPECT_EQ(row(0), 2);
  log.offer("t", "a", "w/1");
  tell();
  await_messages(2);
  EXPECT_EQ(row(1), 4);
}

TEST_F(events_test, AFilterLetsOnlyItsRowsThrough) {
  log.submit("t", "a", "build");
  log.submit("t", "b", "other");
  log.offer("t", "b", "w/1");
  log.offer("t", "a", "w/1");
  const auto events = watch("?from=1&queue=build&event=offer");
  await_messages(1);
  EXPECT_EQ(row(0), 5);
}

TEST_F(events_test, ALastRowEndsTheReaderThereAndNotOneRowLater) {
  log.submit("t", "a");
  log.submit("t", "b");
  const auto events = watch("?from=2&until=3");
  await_messages(2);
  EXPECT_TRUE(wire->closed.empty() || row(1) == 3);
  rig.run_until([&] { return !wire->closed.empty(); });
  EXPECT_EQ(wire->sent.size(), 2U);
  EXPECT_EQ(wire->closed.at(0).first, protocol::close_code::goodbye);
}

TEST_F(events_test, ALastRowEndsTheReaderAlsoWhenNoRowWasWanted) {
  log.submit("t", "a");
  const auto events = watch("?from=1&until=3&job=nope");
  rig.run_until([&] { return rig.gateway.watches.size() == 1; });
  EXPECT_TRUE(wire->closed.empty());
  log.submit("t", "b");
  tell();
  rig.run_until([&] { return !wire->closed.empty(); });
  EXPECT_TRUE(wire->sent.empty());
}

TEST_F(events_test, ALastRowBeforeTheFirstIsRefused) {
  const auto answer =
      rig.http->upgrade(api_rig::request("GET", "/v1/events?from=4&until=3", "auditor"));
  ASSERT_TRUE(std::holds_alternative<upgrade_refused>(answer));
  EXPECT_EQ(std::get<upgrade_refused>(answer).response.status, 400);
}

TEST_F(events_test, ASlowReaderIsReadForNoFasterThanItReads) {
  wire->queued = event_stream::enough_waiting + 1;
  log.submit("t", "a");
  const auto events = watch("?from=1");
  rig.run_until([&] { return !rig.timers.empty(); });
  EXPECT_TRUE(wire->sent.empty());
  wire->queued = 0;
  rig.fire_timers();
  await_messages(2);
}

TEST_F(events_test, AReaderFarBehindIsToldHowFarAndGoesOn) {
  for (int i = 0; i < event_stream::far_behind; ++i) log.submit("t", "j" + std::to_string(i));
  const auto events = watch("?from=1");
  await_messages(1 + static_cast<std::size_t>(event_stream::far_behind) + 1);
  const auto told = boost::json::parse(wire->sent[0]);
  EXPECT_EQ(told.at("behind"), event_stream::far_behind + 1);
  EXPECT_EQ(told.at("next_row"), 1);
  EXPECT_EQ(row(1), 1);
  EXPECT_EQ(row(wire->sent.size() - 1), event_stream::far_behind + 1);
}

TEST_F(events_test, ARevokedCredentialEndsTheReader) {
  const auto events = watch("?from=1");
  await_messages(1);
  rig.api->shared.principals->replace({});
  log.submit("t", "a");
  tell();
  ASSERT_EQ(wire->closed.size(), 1U);
  EXPECT_EQ(wire->closed[0].first, protocol::close_code::credential_ended);
}

TEST_F(events_test, ARevokedCredentialEndsAReaderThatHasNothingToRead) {
  const auto events = watch("?from=1");
  await_messages(1);
  rig.api->sockets.check_all();
  EXPECT_TRUE(wire->closed.empty());
  rig.api->shared.principals->replace({});
  rig.api->sockets.check_all();
  ASSERT_EQ(wire->closed.size(), 1U);
  EXPECT_EQ(wire->closed[0].first, protocol::close_code::credential_ended);
}

TEST_F(events_test, AClosedReaderIsForgotten) {
  const auto events = watch("?from=1");
  await_messages(1);
  events->on_close();
  EXPECT_TRUE(rig.gateway.watches.empty());
  EXPECT_EQ(rig.api->shared.counters->watchers.value(), 0);
}

TEST_F(events_test, AnUnknownFilterIsRefused) {
  const auto answer = rig.http->upgrade(api_rig::request("GET", "/v1/events?quue=x", "auditor"));
  ASSERT_TRUE(std::holds_alternative<upgrade_refused>(answer));
  EXPECT_EQ(std::get<upgrade_refused>(answer).response.status, 400);
}

}  // namespace
}  // namespace leasehold::server
