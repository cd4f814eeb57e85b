// One job's life over the JSON subprotocol, typed by hand as a person would.
#include "stream_peer.hpp"

namespace leasehold::e2e {
namespace {

using protocol::decision;
using protocol::reason;

class json_stream : public on_threads {};
LEASEHOLD_ON_THREADS(json_stream);

const std::string incarnation(32, 'a');

std::string message(std::string_view frame_id, std::string_view body) {
  return "{\"frames\": [{\"frame_id\": \"" + std::string(frame_id) + "\", " + std::string(body) +
         "}]}";
}

TEST_P(json_stream, CarriesAJobFromHelloToGoodbye) {
  live_server server(GetParam());
  server.submit("typed", {{"lease_duration_ms", 3'600'000}, {"max_clock_skew_ms", 3'600'000}});
  stream_peer worker(server, "w1", 'a', protocol::encoding::json);
  EXPECT_NE(worker.upgrade_answer().find("leasehold.v1.json"), std::string::npos);
  worker.send_message(message("1", "\"hello\": {\"incarnation\": \"" + incarnation +
                                       "\", \"queues\": [{\"queue\": \"q\"}]}"),
                      1);
  const auto welcome = worker.await<protocol::welcome>();
  ASSERT_TRUE(welcome);
  EXPECT_EQ(welcome->holder.value, "w1/" + incarnation);
  const auto text = json::parse(worker.newest_message()).as_object();
  EXPECT_EQ(text.at("frames").at(0).at("welcome").at("holder").as_string(), welcome->holder.value);

  const auto credit = "\"credit\": {\"epoch\": \"" + std::to_string(welcome->session_epoch) +
                      "\", \"sequence\": \"1\", \"queue\": \"q\", \"slots\": \"1\"}";
  worker.send_message(message("2", credit), 1);
  const auto offer = worker.offer_of("typed");
  ASSERT_TRUE(offer);
  EXPECT_EQ(offer->payload, "work of typed");
  const auto sent = "\"sent_at\": \"" + std::to_string(welcome->server_time.ms) + "\"";
  const auto lease = "\"lease_id\": \"typed\", \"generation\": \"1\", \"holder\": \"w1/" +
                     incarnation + "\", " + sent;
  struct step {
    std::string body;
    decision what;
    reason why;
  };
  const std::vector<step> life{
      {"\"ack\": {" + lease + "}", decision::accepted, reason::ack_accepted},
      {"\"renew\": {" + lease + ", \"sequence\": \"1\"}", decision::accepted, reason::renewed},
      {"\"progress\": {" + lease + ", \"sequence\": 1, \"value\": \"h\\u00e4lf\"}",
       decision::accepted, reason::progress_recorded},
      {"\"result\": {" + lease + ", \"outcome\": \"success\", \"detail\": \"done\"}",
       decision::accepted, reason::completed},
      {"\"result\": {" + lease + ", \"outcome\": \"failed\", \"detail\": \"no\"}",
       decision::rejected, reason::terminal_conflict}};
  std::int64_t id = 2;
  for (const auto& [body, what, why] : life) {
    worker.send_message(message(std::to_string(++id), body), 1);
    const auto said = worker.await<protocol::frame_verdict>(
        [&](const protocol::frame_verdict& v) { return v.answers == id; });
    ASSERT_TRUE(said) << body;
    EXPECT_EQ(said->decision, what) << body;
    EXPECT_EQ(protocol::word(said->reason), protocol::word(why)) << body;
    EXPECT_NE(worker.newest_message().find(protocol::word(why)), std::string::npos);
  }
  expect_columns(server.job("typed"), {{"state", "completed"},
                                       {"terminal_detail", "done"},
                                       {"progress_value", "h\u00e4lf"},
                                       {"renew_sequence", 1}});
  worker.send_message(message("9", "\"goodbye\": {}"), 1);
  EXPECT_EQ(worker.close_code(), static_cast<int>(protocol::close_code::goodbye));
  expect_replayable(server, "typed");
  expect_proven(server);
}

TEST_P(json_stream, ABadFrameIsAnsweredInJsonToo) {
  live_server server(GetParam());
  stream_peer worker(server, "w1", 'a', protocol::encoding::json);
  worker.hello();
  worker.send_message("{\"frames\": [{", 1);
  const auto said = worker.verdict_of(0);
  ASSERT_TRUE(said);
  EXPECT_EQ(said->reason, reason::malformed);
  EXPECT_EQ(worker.tell(worker.frame(protocol::event_kind::renew, "none", 1, 1)).reason,
            reason::unknown_lease);
}

TEST_P(json_stream, ABodyThatCannotBeReadIsAnsweredWithoutANameAndTakesItsMessageWithIt) {
  live_server server(GetParam());
  stream_peer worker(server, "w1", 'a', protocol::encoding::json);
  worker.hello();
  const std::string good = R"({"frame_id": "7", "renew": {"lease_id": "a", "generation": "1",)"
                           R"( "holder": "w1/x", "sent_at": "1", "sequence": "1"}})";
  const std::string bad = R"({"frame_id": "8", "renew": {"lease_id": "a", "generation": "one"}})";
  worker.send_message("{\"frames\": [" + good + ", " + bad + "]}", 1);
  ASSERT_TRUE(worker.verdict_of(0));
  const auto frames = json::parse(worker.newest_message()).at("frames").as_array();
  ASSERT_EQ(frames.size(), 1U);  // nothing about the good one
  const auto& verdict = frames.at(0).at("verdict").as_object();
  EXPECT_FALSE(verdict.contains("answers"));
  EXPECT_EQ(verdict.at("reason"), "malformed");
  // The good one alone is judged.
  worker.send_message("{\"frames\": [" + good + "]}", 1);
  EXPECT_TRUE(worker.verdict_of(7));
}

TEST_P(json_stream, ABodyOfAnUnknownKindOrBeyondABoundIsNamedAndTheOthersAreJudged) {
  live_server server(GetParam());
  stream_peer worker(server, "w1", 'a', protocol::encoding::json);
  const auto holder = "\"w1/" + incarnation + '"';
  worker.hello();
  const auto renew = [&](const std::string& id, const std::string& lease) {
    return "{\"frame_id\": \"" + id + R"(", "renew": {"lease_id": ")" + lease +
           R"(", "generation": "1", "sent_at": "1", "sequence": "1", "holder": )" + holder + "}}";
  };
  worker.send_message("{\"frames\": [" + renew("7", "none") +
                          R"(, {"frame_id": "8", "later": {}}, )" + renew("9", "no/id") + "]}",
                      1);
  for (const auto& [id, why] : {std::pair{7, reason::unknown_lease},
                                {8, reason::unsupported_frame},
                                {9, reason::invalid_frame}}) {
    const auto said = worker.verdict_of(id);
    ASSERT_TRUE(said) << id;
    EXPECT_EQ(said->reason, why) << id;
  }
}

}  // namespace
}  // namespace leasehold::e2e
