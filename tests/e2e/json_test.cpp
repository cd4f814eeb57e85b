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

}  // namespace
}  // namespace leasehold::e2e
