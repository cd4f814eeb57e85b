// What is refused before a lease is touched: each in its own way, and the server goes on.
#include "stream_peer.hpp"

namespace leasehold::e2e {
namespace {

using protocol::close_code;
using protocol::event_kind;
using protocol::reason;

class refusals : public on_threads {
 protected:
  live_server server{GetParam()};

  /// After everything that was done to it.
  void TearDown() override {
    EXPECT_EQ(server.get("/healthz", "").status, 200);
    EXPECT_EQ(server.get("/readyz", "").status, 200);
    expect_that_it_works("afterwards");
    expect_proven(server);
  }

  void expect_that_it_works(const std::string& job) {
    stream_peer worker(server, "w2", 'd');
    worker.hello();
    worker.credit(1);
    server.submit(job);
    ASSERT_TRUE(worker.offer_of(job));
    worker.start(job, 1);
    EXPECT_EQ(worker.tell(worker.result(job, 1, protocol::outcome::success)).reason,
              reason::completed);
    worker.say(protocol::goodbye{});
    EXPECT_EQ(worker.close_code(), static_cast<int>(close_code::goodbye));
  }

  /// Sends one message in a session that has been welcomed; its close code.
  std::optional<int> close_after(std::string_view message, int opcode,
                                 protocol::encoding how = protocol::encoding::protobuf) {
    stream_peer worker(server, "w1", 'a', how);
    worker.hello();
    worker.send_message(message, opcode);
    return worker.close_code();
  }
};
LEASEHOLD_ON_THREADS(refusals);

TEST_P(refusals, AMalformedMessageIsAnsweredAndTheSessionGoesOn) {
  stream_peer worker(server, "w1");
  worker.hello();
  worker.send_message("\xff\xff\xff no protobuf");
  const auto said = worker.verdict_of(0);
  ASSERT_TRUE(said);
  EXPECT_EQ(said->decision, protocol::decision::rejected);
  EXPECT_EQ(said->reason, reason::malformed);
  EXPECT_EQ(said->outcome, protocol::reason_class::permanent);
  EXPECT_EQ(worker.tell(worker.frame(event_kind::renew, "nothing", 1, 1)).reason,
            reason::unknown_lease);
}

TEST_P(refusals, AMalformedMessageBesideHelloIsAnsweredToo) {
  stream_peer worker(server, "w1");
  // A Hello, and in the same message a frame that breaks a bound.
  protocol::hello hello;
  hello.incarnation = std::string(32, 'a');
  hello.queues.push_back({"q", {}});
  worker.say_all({hello, protocol::credit{0, {1}, "no/queue", 1}});
  EXPECT_TRUE(worker.await<protocol::welcome>());
  const auto said = worker.await<protocol::frame_verdict>();
  ASSERT_TRUE(said);
  EXPECT_EQ(said->answers, 2);
  EXPECT_EQ(said->reason, reason::invalid_frame);
}

TEST_P(refusals, AFrameBeyondABoundIsInvalidAndTouchesNoLease) {
  stream_peer worker(server, "w1");
  worker.hello();
  worker.credit(1);
  server.submit("bounds");
  ASSERT_TRUE(worker.offer_of("bounds"));
  worker.start("bounds", 1);
  EXPECT_EQ(worker.tell(worker.progress("bounds", 1, 1, std::string(1024, 'x'))).reason,
            reason::progress_recorded);
  EXPECT_EQ(worker.tell(worker.progress("bounds", 1, 2, std::string(1025, 'x'))).reason,
            reason::invalid_frame);
  EXPECT_EQ(
      worker.tell(worker.result("bounds", 1, protocol::outcome::success, std::string(4097, 'x')))
          .reason,
      reason::invalid_frame);
  EXPECT_EQ(worker.tell(worker.frame(event_kind::renew, "bad/id", 1, 1)).reason,
            reason::invalid_frame);
  expect_columns(server.job("bounds"), {{"state", "active"}, {"progress_sequence", 1}});
}

TEST_P(refusals, AMessageOfAnUnknownKindIsUnsupported) {
  stream_peer worker(server, "w1");
  worker.hello();
  // frames = [{frame_id: 7}]: a frame whose body this version does not know.
  worker.send_message("\x0a\x02\x08\x07");
  const auto said = worker.verdict_of(7);
  ASSERT_TRUE(said);
  EXPECT_EQ(said->reason, reason::unsupported_frame);
}

TEST_P(refusals, TooManyUnreadableFramesEndTheSession) {
  stream_peer worker(server, "w1");
  worker.hello();
  for (int i = 0; i < 11; ++i) worker.send_message("\xff");
  EXPECT_EQ(worker.close_code(), static_cast<int>(close_code::policy));
}

TEST_P(refusals, AnOversizedMessageIsClosedWith1009) {
  EXPECT_EQ(close_after(std::string(std::size_t{65} * 1024, 'x'), 2),
            static_cast<int>(close_code::too_big));
}

TEST_P(refusals, TextThatIsNoUtf8IsClosedWith1007) {
  EXPECT_EQ(close_after("{\"frames\": \"\xc3\x28\"}", 1, protocol::encoding::json),
            static_cast<int>(close_code::bad_text));
}

TEST_P(refusals, TheOtherTypeOfMessageIsClosedWith1003) {
  EXPECT_EQ(close_after("{}", 1), static_cast<int>(close_code::wrong_message_type));
  EXPECT_EQ(close_after("{}", 2, protocol::encoding::json),
            static_cast<int>(close_code::wrong_message_type));
}

TEST_P(refusals, AFirstFrameThatIsNoHelloIsClosedWith1002) {
  stream_peer worker(server, "w1");
  worker.say(protocol::worker_heartbeat{});
  EXPECT_EQ(worker.close_code(), static_cast<int>(close_code::protocol_error));
}

TEST_P(refusals, ASessionWithoutHelloIsClosedWith1008) {
  stream_peer worker(server, "w1");
  ASSERT_TRUE(worker.upgraded());
  EXPECT_EQ(worker.close_code(), static_cast<int>(close_code::policy));
}

TEST_P(refusals, AnotherIncarnationInTheSameSessionIsClosedWith1002) {
  stream_peer worker(server, "w1");
  worker.hello();
  protocol::hello again;
  // The same once more is a repeat of the channel and changes nothing.
  again.incarnation = std::string(32, 'a');
  worker.say(again);
  EXPECT_EQ(worker.tell(worker.frame(event_kind::renew, "nothing", 1, 1)).reason,
            reason::unknown_lease);
  again.incarnation = std::string(32, 'b');
  worker.say(again);
  EXPECT_EQ(worker.close_code(), static_cast<int>(close_code::protocol_error));
}

TEST_P(refusals, NobodyIsUpgradedWithoutACredential) {
  const stream_peer nobody(server, "");
  EXPECT_FALSE(nobody.upgraded());
  EXPECT_TRUE(nobody.upgrade_answer().starts_with("HTTP/1.1 401")) << nobody.upgrade_answer();
  EXPECT_NE(nobody.upgrade_answer().find("WWW-Authenticate"), std::string::npos)
      << nobody.upgrade_answer();
}

TEST_P(refusals, AClientIsNoWorkerAndAWorkerNoClient) {
  const stream_peer client(server, "client");
  EXPECT_FALSE(client.upgraded());
  EXPECT_TRUE(client.upgrade_answer().starts_with("HTTP/1.1 403")) << client.upgrade_answer();
  const auto said = server.post("/v1/jobs", {{"queue", "q"}}, "w1");
  EXPECT_EQ(said.status, 403);
  EXPECT_EQ(said.body.at("reason"), "forbidden");
  server.submit("guarded", {}, "elsewhere");
  EXPECT_EQ(server.post("/v1/jobs/guarded:revoke", {}, "client").status, 403);
  EXPECT_EQ(server.post("/v1/jobs/guarded:cancel", {}, "auditor").status, 403);
  EXPECT_EQ(server.get("/v1/jobs", "").status, 401);
}

TEST_P(refusals, AnotherTenantsJobReadsAsUnknown) {
  stream_peer worker(server, "w1");
  worker.hello();
  worker.credit(1);
  server.submit("ours");
  ASSERT_TRUE(worker.offer_of("ours"));
  worker.start("ours", 1);
  stream_peer stranger(server, "stranger", 'e');
  stranger.hello();
  stranger.credit(10);
  const auto said = stranger.tell(stranger.frame(event_kind::renew, "ours", 1, 1));
  EXPECT_EQ(said.reason, reason::unknown_lease);
  EXPECT_EQ(said.standing.state, protocol::lease_state::none);
  EXPECT_EQ(said.standing.gen.value, 0);
  for (const auto* target : {"/v1/jobs/ours", "/v1/jobs/ours/evidence"}) {
    const auto answer = server.get(target, "stranger");
    EXPECT_EQ(answer.status, 404) << target;
    EXPECT_EQ(answer.body.at("reason"), "unknown_lease");
  }
  EXPECT_EQ(server.post("/v1/jobs/ours:cancel", {}, "stranger").status, 404);
  // The same id is another job there.
  EXPECT_EQ(server.post("/v1/jobs", {{"queue", "q"}, {"job_id", "ours"}}, "stranger").status, 201);
  EXPECT_TRUE(stranger.offer_of("ours"));
  expect_columns(server.job("ours"), {{"state", "active"}, {"frozen", false}});
  EXPECT_EQ(stranger.waiting<protocol::offer>(), 0);
}

TEST_P(refusals, ANewerSessionOfTheSameHolderSupersedesTheOlder) {
  stream_peer former(server, "w1");
  former.hello();
  former.credit(1);
  server.submit("kept", {{"lease_duration_ms", 3'600'000}});
  ASSERT_TRUE(former.offer_of("kept"));
  former.start("kept", 1);
  stream_peer again(server, "w1");
  const auto welcome = again.hello({{protocol::lease_id{"kept"}, {1}, {}}});
  ASSERT_EQ(welcome.resumed.size(), 1U);
  EXPECT_EQ(former.close_code(), static_cast<int>(close_code::superseded));
  EXPECT_EQ(again.tell(again.frame(event_kind::renew, "kept", 1, 1)).reason, reason::renewed);
}

}  // namespace
}  // namespace leasehold::e2e
