// The wire: frames survive both encodings, and no input breaks the codec.
#include "leasehold/protocol/codec.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <fstream>
#include <limits>
#include <sstream>
#include <string>

namespace leasehold::protocol {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

template <class Frame>
std::string encoded(encoding how, const std::vector<Frame>& frames) {
  std::string out;
  codec(how).encode(std::span<const Frame>(frames), out);
  return out;
}

// ---- arbitrary frames --------------------------------------------------------------------------

rc::Gen<std::string> any_id() {
  return rc::gen::suchThat(
      rc::gen::container<std::string>(rc::gen::elementOf(std::string("AZaz09._:-"))),
      [](const std::string& id) { return !id.empty() && id.size() <= 128; });
}
rc::Gen<std::string> any_text() {
  return rc::gen::map(
      rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(
          "a", "\"", "\\", "\n", std::string(1, '\0'), "\u00fc", "\U0001F512", "<", "\x7f")),
      [](const std::vector<std::string>& parts) {
        std::string all;
        for (const auto& part : parts) all += part;
        return all.substr(0, all.size() <= 60 ? all.size() : 0);
      });
}
std::int64_t any_number() { return *rc::gen::inRange(-max_number, max_number + 1); }
std::int64_t any_frame_id() { return any_number() & std::numeric_limits<std::int64_t>::max(); }
std::string payload_bytes() { return *rc::gen::arbitrary<std::string>(); }

running_lease any_running() {
  return {.lease = lease_id(*any_id()), .gen = {any_number()}, .row = {any_number()}};
}

hello any_hello() {
  hello h{.incarnation = "0123456789abcdef0123456789abcdef",
          .client_name = *any_text(),
          .client_version = *any_text(),
          .queues = {},
          .running = {any_running(), any_running()},
          .highest_frame_kind = any_number()};
  h.queues.push_back({.queue = *any_id(), .has = {{*any_id(), *any_text()}, {"gpu", ""}}});
  return h;
}

lease_frame any_lease_frame() {
  lease_frame f;
  auto& e = f.what;
  e.kind = *rc::gen::element(event_kind::ack, event_kind::decline, event_kind::renew,
                             event_kind::progress, event_kind::cancel_ack, event_kind::result,
                             event_kind::release);
  e.lease = lease_id(*any_id());
  e.from = holder(*any_text());
  e.sent_at.ms = any_number();
  e.trace_id = *any_text();
  e.gen.value = any_number();
  if (e.kind == event_kind::renew || e.kind == event_kind::progress) e.seq.value = any_number();
  if (e.kind == event_kind::progress) e.value = *any_text();
  if (e.kind == event_kind::decline) f.decline_reason = *any_text();
  if (e.kind == event_kind::renew || e.kind == event_kind::release) {
    e.request = request_id(*any_text());
  }
  if (e.kind == event_kind::result) {
    e.ending =
        *rc::gen::element(outcome::none, outcome::success, outcome::failed, outcome::cancelled);
    if (e.ending == outcome::none)
      e.unknown_outcome = *rc::gen::element<std::string>("", "4", "77");
    e.detail = *any_text();
    e.retryable = *rc::gen::arbitrary<bool>();
    f.last_progress_sequence.value = any_number();
    f.last_progress_value = *any_text();
  }
  return f;
}

process_registration any_registration() {
  const auto pid = *rc::gen::inRange<std::int64_t>(2, (std::int64_t{1} << 22) + 1);
  return {.lease = lease_id(*any_id()),
          .gen = {any_number()},
          .from = holder(*any_text()),
          .process = {.platform = *rc::gen::element<std::string>("linux", "a", "0123456789abcdef"),
                      .pid = pid,
                      .boot_id = "01234567-89ab-cdef-0123-456789abcdef",
                      .start_ticks = *rc::gen::inRange<std::int64_t>(1, max_number >> 8),
                      .process_group = pid}};
}

worker_frame any_worker_frame() {
  worker_frame f{.frame_id = any_frame_id(), .body = {}};
  switch (*rc::gen::inRange(0, 9)) {
    case 0:
      f.body = any_hello();
      break;
    case 1:
      f.body = credit{
          .epoch = any_number(), .seq = {any_number()}, .queue = *any_id(), .slots = any_number()};
      break;
    case 2:
      f.body = worker_heartbeat{any_number()};
      break;
    case 3:
      f.body = goodbye{{any_running()}};
      break;
    case 4:
      f.body = any_registration();
      break;
    default: {
      auto about = any_lease_frame();
      about.what.frame_id = f.frame_id;
      f.body = std::move(about);
    }
  }
  return f;
}

lease_standing any_standing() {
  return {.lease = lease_id(*any_id()),
          .gen = {any_number()},
          .row = {any_number()},
          .state = static_cast<lease_state>(*rc::gen::inRange(0, 14)),
          .expires_at = {any_number()},
          .renew_sequence = {any_number()},
          .progress_sequence = {any_number()},
          .cancel_requested = *rc::gen::arbitrary<bool>(),
          .cancel_deadline = {any_number()}};
}
lost_lease any_lost() {
  return {.lease = lease_id(*any_id()),
          .gen = {any_number()},
          .row = {any_number()},
          .why = static_cast<loss>(*rc::gen::inRange(1, 5))};
}

frame_verdict any_verdict() {
  frame_verdict v{.answers = any_frame_id(),
                  .epoch = any_number(),
                  .decision = static_cast<decision>(*rc::gen::inRange(1, 6)),
                  .reason = reason::lease_expired,
                  .outcome = static_cast<reason_class>(*rc::gen::inRange(1, 6)),
                  .retry_after = {any_number()},
                  .standing = {},
                  .grant = {}};
  if (*rc::gen::arbitrary<bool>()) v.standing = any_standing();
  if (*rc::gen::arbitrary<bool>()) v.grant = {{any_number()}, *rc::gen::arbitrary<bool>()};
  if (v.grant.gen.value == 0) v.grant = {};
  return v;
}

offer any_offer() {
  return {.standing = any_standing(),
          .job = job_id(*any_id()),
          .queue = *any_id(),
          .payload = payload_bytes(),
          .attempt = any_number(),
          .ack_deadline = {any_number()},
          .lease_duration = {any_number()},
          .cancel_grace = {any_number()},
          .max_lifetime = {any_number()},
          .last_progress = *any_text(),
          .trace_id = *any_text()};
}

coordinator_frame any_coordinator_frame() {
  coordinator_frame f{.frame_id = any_frame_id(), .body = {}};
  switch (*rc::gen::inRange(0, 9)) {
    case 0:
      f.body = welcome{.holder = holder(*any_text()),
                       .session_epoch = any_number(),
                       .resumed = {any_standing(), any_standing()},
                       .lost = {any_lost()},
                       .server_time = {any_number()},
                       .frames_in_flight = any_number(),
                       .message_bytes = any_number(),
                       .heartbeat_interval = {any_number()},
                       .node = *any_text()};
      break;
    case 1:
      f.body = any_verdict();
      break;
    case 2:
      f.body = any_offer();
      break;
    case 3:
      f.body = activated{any_standing(), {any_number()}};
      break;
    case 4:
      f.body = cancel_notice{any_standing()};
      break;
    case 5:
      f.body = lease_lost{any_lost()};
      break;
    case 6:
      f.body = granted{any_standing(), request_id(*any_text())};
      break;
    case 7:
      f.body = drain{{any_number()}, *any_text()};
      break;
    default:
      f.body = server_heartbeat{{any_number()}};
  }
  return f;
}

encoding any_encoding() { return *rc::gen::element(encoding::protobuf, encoding::json); }

RC_GTEST_PROP(codec_property, WorkerFramesSurviveBothEncodings, ()) {
  const auto how = any_encoding();
  std::vector<worker_frame> frames;
  for (int n = *rc::gen::inRange(0, 5); n > 0; --n) frames.push_back(any_worker_frame());
  codec c(how);
  const auto read = c.decode_worker(bytes_of(encoded(how, frames)));
  RC_ASSERT(!read.broken);
  RC_ASSERT(read.unreadable.empty());
  RC_ASSERT(read.frames == frames);
}

RC_GTEST_PROP(codec_property, CoordinatorFramesSurviveBothEncodings, ()) {
  const auto how = any_encoding();
  std::vector<coordinator_frame> frames;
  for (int n = *rc::gen::inRange(0, 5); n > 0; --n) frames.push_back(any_coordinator_frame());
  codec c(how);
  const auto read = c.decode_coordinator(bytes_of(encoded(how, frames)));
  RC_ASSERT(!read.broken);
  RC_ASSERT(read.unreadable.empty());
  RC_ASSERT(read.frames == frames);
}

RC_GTEST_PROP(codec_property, AnyBytesAreEitherReadOrNamedBroken, (const std::string& noise)) {
  codec c(any_encoding());
  const auto worker = c.decode_worker(bytes_of(noise));
  RC_ASSERT(!worker.broken || worker.frames.empty());
  const auto coordinator = c.decode_coordinator(bytes_of(noise));
  RC_ASSERT(!coordinator.broken || coordinator.frames.empty());
}

RC_GTEST_PROP(codec_property, OneChangedByteNeverBreaksTheCodec, ()) {
  const auto how = any_encoding();
  auto message = encoded<worker_frame>(how, {any_worker_frame(), any_worker_frame()});
  const auto at = *rc::gen::inRange<std::size_t>(0, message.size());
  message[at] = static_cast<char>(*rc::gen::inRange(0, 256));
  codec c(how);
  const auto read = c.decode_worker(bytes_of(message));
  RC_ASSERT(!read.broken || read.frames.empty());
}

RC_GTEST_PROP(codec_property, ATruncatedMessageNeverYieldsAFrameThatWasNotSent, ()) {
  const auto how = any_encoding();
  const std::vector<worker_frame> frames{any_worker_frame(), any_worker_frame()};
  const auto message = encoded(how, frames);
  const auto kept = *rc::gen::inRange<std::size_t>(0, message.size());
  codec c(how);
  const auto read = c.decode_worker(bytes_of(std::string_view(message).substr(0, kept)));
  RC_ASSERT(read.frames.size() < 2U);
  if (!read.frames.empty()) RC_ASSERT(read.frames.front() == frames.front());
}

// ---- named cases -------------------------------------------------------------------------------

worker_frame renew_frame(std::int64_t id, std::string lease) {
  lease_frame f;
  f.what.kind = event_kind::renew;
  f.what.lease = lease_id(std::move(lease));
  f.what.gen.value = 7;
  f.what.from = holder("w/0");
  f.what.seq.value = 3;
  f.what.sent_at.ms = 1000;
  f.what.frame_id = id;
  return {.frame_id = id, .body = std::move(f)};
}

worker_frame with(worker_frame frame, event_kind kind, auto change) {
  auto& about = std::get<lease_frame>(frame.body);
  about.what.kind = kind;
  about.what.seq = {};
  change(about);
  return frame;
}

class both_encodings : public testing::TestWithParam<encoding> {
 protected:
  decoded_message<worker_frame> reread(const std::vector<worker_frame>& frames) {
    codec c(GetParam());
    return c.decode_worker(bytes_of(encoded(GetParam(), frames)));
  }
};
INSTANTIATE_TEST_SUITE_P(wire, both_encodings, testing::Values(encoding::protobuf, encoding::json),
                         [](const auto& p) {
                           return p.param == encoding::json ? std::string("json")
                                                            : std::string("protobuf");
                         });

TEST_P(both_encodings, AFrameOverABoundIsNamedByItsIdAndTheOthersAreRead) {
  const auto read =
      reread({renew_frame(1, "L1"), renew_frame(2, "no spaces"), renew_frame(3, "L3")});
  ASSERT_FALSE(read.broken);
  ASSERT_EQ(read.frames.size(), 2U);
  EXPECT_EQ(read.frames[1].frame_id, 3);
  ASSERT_EQ(read.unreadable.size(), 1U);
  EXPECT_EQ(read.unreadable[0].frame_id, 2);
  EXPECT_EQ(read.unreadable[0].reason, reason::invalid_frame);
  EXPECT_NE(read.unreadable[0].sentence.find("lease_id"), std::string::npos);
}

TEST_P(both_encodings, ALeaseIdHasOneTo128Characters) {
  EXPECT_EQ(reread({renew_frame(1, "")}).unreadable.size(), 1U);
  EXPECT_EQ(reread({renew_frame(1, "x")}).frames.size(), 1U);
  EXPECT_EQ(reread({renew_frame(1, std::string(127, 'x'))}).frames.size(), 1U);
  EXPECT_EQ(reread({renew_frame(1, std::string(128, 'x'))}).frames.size(), 1U);
  EXPECT_EQ(reread({renew_frame(1, std::string(129, 'x'))}).unreadable.size(), 1U);
}

TEST_P(both_encodings, NumbersOfAFrameEndAt2To53) {
  const auto renew = [](std::int64_t gen, std::int64_t seq, std::int64_t sent_at) {
    return with(renew_frame(1, "L"), event_kind::renew, [=](lease_frame& f) {
      f.what.gen = {gen};
      f.what.seq = {seq};
      f.what.sent_at = {sent_at};
    });
  };
  EXPECT_EQ(reread({renew(max_number, max_number, max_number), renew(-max_number, 0, -max_number)})
                .frames.size(),
            2U);
  EXPECT_EQ(reread({renew(max_number + 1, 1, 1), renew(1, max_number + 1, 1),
                    renew(1, 1, max_number + 1), renew(1, 1, -max_number - 1)})
                .unreadable.size(),
            4U);
}

TEST_P(both_encodings, TextsEndWhereProtocolSays) {
  const auto progress = [](std::size_t n) {
    return with(renew_frame(1, "L"), event_kind::progress,
                [n](lease_frame& f) { f.what.value = std::string(n, 'v'); });
  };
  const auto result = [](std::size_t n) {
    return with(renew_frame(1, "L"), event_kind::result, [n](lease_frame& f) {
      f.what.ending = outcome::success;
      f.what.detail = std::string(n, 'd');
    });
  };
  const auto release = [](std::size_t n) {
    return with(renew_frame(1, "L"), event_kind::release,
                [n](lease_frame& f) { f.what.request = request_id(std::string(n, 'r')); });
  };
  const auto by = [](std::size_t n) {
    return with(renew_frame(1, "L"), event_kind::ack,
                [n](lease_frame& f) { f.what.from = holder(std::string(n, 'h')); });
  };
  EXPECT_EQ(reread({progress(1024), result(4096), release(64), by(200)}).frames.size(), 4U);
  EXPECT_EQ(reread({progress(1025), result(4097), release(65), by(201)}).unreadable.size(), 4U);
}

TEST_P(both_encodings, WhatWasNotSentStaysZeroForTheRulesToJudge) {
  worker_frame bare = renew_frame(1, "L");
  auto& what = std::get<lease_frame>(bare.body).what;
  what.gen = {};
  what.from = {};
  what.seq = {};
  what.sent_at = {};
  const auto read = reread({bare});
  ASSERT_EQ(read.frames.size(), 1U);
  EXPECT_EQ(read.frames[0], bare);
}

TEST_P(both_encodings, AProcessThatIsNotWellFormedIsRefusedWithoutSayingWhatItWas) {
  const process_registration good{
      .lease = lease_id("L"),
      .gen = {1},
      .from = holder("w/1"),
      .process = {"linux", 4242, "01234567-89ab-cdef-0123-456789abcdef", 77, 4242}};
  auto bad = good;
  bad.process.process_group = 4243;
  const auto read = reread({{1, good}, {2, bad}});
  ASSERT_EQ(read.frames.size(), 1U);
  EXPECT_EQ(std::get<process_registration>(read.frames[0].body), good);
  ASSERT_EQ(read.unreadable.size(), 1U);
  EXPECT_EQ(read.unreadable[0].frame_id, 2);
  EXPECT_EQ(read.unreadable[0].reason, reason::invalid_frame);
  for (const auto* part : {"4242", "4243", "01234567", "77"}) {
    EXPECT_EQ(read.unreadable[0].sentence.find(part), std::string::npos) << part;
  }
}

TEST_P(both_encodings, TooManyFramesBreakTheMessage) {
  codec c(GetParam(), {.frames = 3});
  std::vector<worker_frame> frames(3, renew_frame(1, "L"));
  EXPECT_FALSE(c.decode_worker(bytes_of(encoded(GetParam(), frames))).broken);
  frames.push_back(renew_frame(1, "L"));
  const auto read = c.decode_worker(bytes_of(encoded(GetParam(), frames)));
  ASSERT_TRUE(read.broken);
  EXPECT_EQ(read.broken->reason, reason::too_large);
  EXPECT_TRUE(read.frames.empty());
}

TEST_P(both_encodings, ACodecIsAsGoodAfterABrokenMessage) {
  codec c(GetParam());
  ASSERT_TRUE(c.decode_worker(bytes_of("{{{\xff\xff")).broken);
  const std::vector<worker_frame> frames{renew_frame(9, "L")};
  EXPECT_EQ(c.decode_worker(bytes_of(encoded(GetParam(), frames))).frames, frames);
}

TEST_P(both_encodings, EncodingAppends) {
  std::string out = "kept";
  codec c(GetParam());
  const std::vector<worker_frame> frames{renew_frame(9, "L")};
  c.encode(std::span<const worker_frame>(frames), out);
  EXPECT_EQ(out.substr(0, 4), "kept");
  EXPECT_EQ(c.decode_worker(bytes_of(std::string_view(out).substr(4))).frames, frames);
}

TEST(codec_protobuf, AKindThatIsNotKnownIsUnsupportedAndNamedByItsId) {
  // WorkerMessage{frames{frame_id: 5, field 90: {}}}
  const std::string message("\x0a\x05\x08\x05\xd2\x05\x00", 7);
  const auto read = codec(encoding::protobuf).decode_worker(bytes_of(message));
  ASSERT_EQ(read.unreadable.size(), 1U);
  EXPECT_EQ(read.unreadable[0].frame_id, 5);
  EXPECT_EQ(read.unreadable[0].reason, reason::unsupported_frame);
}

TEST(codec_protobuf, TextThatIsNotUtf8BreaksTheMessage) {
  auto message = encoded<worker_frame>(encoding::protobuf, {renew_frame(1, "LXL")});
  message[message.find('X')] = '\xff';
  testing::internal::CaptureStderr();
  const auto read = codec(encoding::protobuf).decode_worker(bytes_of(message));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "a peer must not write into our log";
  ASSERT_TRUE(read.broken);
  EXPECT_EQ(read.broken->reason, reason::malformed);
}

TEST(codec_protobuf, NestingBeyondTheLimitBreaksTheMessage) {
  // A group of an unknown field number, opened again and again.
  const std::string open(1000, '\x13');
  EXPECT_TRUE(codec(encoding::protobuf).decode_worker(bytes_of(open)).broken);
}

TEST(codec_json, AKindThatIsNotKnownIsUnsupportedAndNamedByItsId) {
  const auto read =
      codec(encoding::json)
          .decode_worker(bytes_of(R"({"frames":[{"frame_id":"5","teleport":{"to":"moon"}}]})"));
  ASSERT_EQ(read.unreadable.size(), 1U);
  EXPECT_EQ(read.unreadable[0].frame_id, 5);
  EXPECT_EQ(read.unreadable[0].reason, reason::unsupported_frame);
}

TEST(codec_json, NumbersOf64BitsAreStringsAndWordsAreThoseOfTheProtocol) {
  coordinator_frame frame{.frame_id = 4, .body = {}};
  frame.body = frame_verdict{.answers = 9,
                             .epoch = 2,
                             .decision = decision::rejected,
                             .reason = reason::stale_generation,
                             .outcome = reason_class::permanent,
                             .retry_after = {},
                             .standing = {},
                             .grant = {}};
  EXPECT_EQ(
      encoded<coordinator_frame>(encoding::json, {frame}),
      R"({"frames":[{"frame_id":"4","verdict":{"answers":"9","epoch":"2","decision":"rejected",)"
      R"("reason":"stale_generation","class":"permanent"}}]})");
}

TEST(codec_json, DeepNestingBreaksTheMessage) {
  std::string deep = R"({"x":)";
  for (int n = 0; n < 20000; ++n) deep += '[';
  EXPECT_TRUE(codec(encoding::json).decode_worker(bytes_of(deep)).broken);
}

TEST(codec_json, TextThatIsNotUtf8BreaksTheMessage) {
  auto message = encoded<worker_frame>(encoding::json, {renew_frame(1, "LXL")});
  message[message.find('X')] = '\xff';
  EXPECT_TRUE(codec(encoding::json).decode_worker(bytes_of(message)).broken);
}

TEST(codec_json, TrailingTextBreaksTheMessage) {
  EXPECT_TRUE(
      codec(encoding::json).decode_worker(bytes_of(R"({"frames":[]} {"frames":[]})")).broken);
}

/// What stands between "enum Word {" of message Reason and its brace, one `word = number` a line.
std::vector<std::string> reasons_of_the_proto() {
  std::ifstream file(LEASEHOLD_SOURCE_DIR "/protocol/leasehold/v1/stream.proto");
  std::vector<std::string> lines;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line == "message Reason {") inside = true;
    if (inside && line == "  }") break;
    const auto equals = line.find(" = ");
    if (inside && equals != std::string::npos) {
      lines.push_back(line.substr(4, line.find(';') - 4));
    }
  }
  return lines;
}

TEST(stream_proto, HasTheReasonsOfReasonDefAndNoOthers) {
  std::vector<std::string> expected{"none = 0"};
#define LEASEHOLD_REASON(name, number, class_, status, text) \
  expected.push_back(#name " = " #number);
#include "leasehold/protocol/reason.def"
#undef LEASEHOLD_REASON
  EXPECT_EQ(reasons_of_the_proto(), expected);
}

}  // namespace
}  // namespace leasehold::protocol
