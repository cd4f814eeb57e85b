// Rows as bytes: what is written is read back, and nothing that was not written is believed.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <random>

#include "leasehold/protocol/evidence.hpp"
#include "leasehold/protocol/packed.hpp"
#include "leasehold/protocol/record_image.hpp"

namespace leasehold::protocol {
namespace {

rc::Gen<std::string> any_text() {
  return rc::gen::oneOf(
      rc::gen::just(std::string()),
      rc::gen::element<std::string>(
          "w-a", "p/000102030405060708090a0b0c0d0e0f", "/00112233445566778899aabbccddeeff",
          "p/000102030405060708090A0B0C0D0E0F", std::string(300, 'x'), std::string("\0\xff", 2)),
      rc::gen::arbitrary<std::string>());
}

rc::Gen<std::int64_t> any_number() {
  return rc::gen::oneOf(rc::gen::just(std::int64_t{0}), rc::gen::inRange<std::int64_t>(-3, 400),
                        rc::gen::element<std::int64_t>(std::numeric_limits<std::int64_t>::min(),
                                                       std::numeric_limits<std::int64_t>::max(),
                                                       max_number, 1'700'000'000'000),
                        rc::gen::arbitrary<std::int64_t>());
}

event any_event() {
  event e;
  e.kind = *rc::gen::element(event_kind::ack, event_kind::renew, event_kind::result,
                             event_kind::submit, event_kind::offer, event_kind::revoke,
                             event_kind::expire, event_kind::policy, event_kind::counted);
  e.lease.value = *any_text();
  e.job.value = *any_text();
  e.gen.value = *any_number();
  e.from.value = *any_text();
  e.seq.value = *any_number();
  e.sent_at.ms = *any_number();
  e.value = *any_text();
  e.ending =
      *rc::gen::element(outcome::none, outcome::success, outcome::failed, outcome::cancelled);
  e.unknown_outcome = *any_text();
  e.detail = *any_text();
  e.retryable = *rc::gen::arbitrary<bool>();
  e.force = *rc::gen::arbitrary<bool>();
  e.request.value = *any_text();
  e.frame_id = *any_number();
  e.session_epoch = *any_number();
  e.trace_id = *any_text();
  return e;
}

stored_row any_row() {
  stored_row r;
  r.row.value = *rc::gen::inRange<std::int64_t>(1, 1'000'000);
  r.prev_row.value = *any_number();
  r.key = {tenant_id(*any_text()), lease_id(*any_text())};
  r.policy.value = *rc::gen::arbitrary<std::uint64_t>();
  r.at.ms = *any_number();
  r.ingress_at.ms = *rc::gen::oneOf(rc::gen::just(r.at.ms), any_number());
  r.fired_at.ms = *any_number();
  r.has_input = *rc::gen::arbitrary<bool>();
  r.input = any_event();
  if (*rc::gen::arbitrary<bool>()) r.input.lease = r.key.lease;
  if (!r.has_input) {
    const event_kind kind = r.input.kind;
    r.input = {};
    r.input.kind = kind;
  }
  r.derived = *rc::gen::arbitrary<bool>();
  r.state_before = static_cast<lease_state>(*rc::gen::inRange(0, 14));
  r.answer.decision = static_cast<decision>(*rc::gen::inRange(1, 6));
  const auto reasons = all_reasons();
  r.answer.reason = reasons[*rc::gen::inRange<std::size_t>(0, reasons.size())].code;
  r.answer.rule = static_cast<rule_id>(*rc::gen::inRange(0, 65536));
  r.answer.flags = {*rc::gen::arbitrary<bool>(), *rc::gen::arbitrary<bool>(),
                    *rc::gen::arbitrary<bool>(), *rc::gen::arbitrary<bool>()};
  r.rule_version = *any_number();
  r.attachment = *any_text();
  return r;
}

RC_GTEST_PROP(EvidenceRows, EveryRowIsReadBackAsItWasWritten, ()) {
  const stored_row r = any_row();
  const auto decoded = decode_rows(encode_row(r), r.row);
  RC_ASSERT(!decoded.broken);
  RC_ASSERT(decoded.rows.size() == std::size_t{1});
  RC_ASSERT(decoded.rows.front() == r);
}

RC_GTEST_PROP(EvidenceRows, ACutRowIsBrokenWhereverItIsCut, ()) {
  const std::string bytes = encode_row(any_row());
  const auto size = *rc::gen::inRange<std::size_t>(1, bytes.size());
  const auto decoded = decode_rows(bytes.substr(0, size), {7});
  RC_ASSERT(decoded.broken == row_number{7});
  RC_ASSERT(decoded.rows.empty());
}

RC_GTEST_PROP(EvidenceRows, AChangedByteNeverReadsOutOfBounds, ()) {
  std::string bytes = encode_row(any_row()) + encode_row(any_row());
  for (int i = *rc::gen::inRange(1, 4); i > 0; --i) {
    bytes[*rc::gen::inRange<std::size_t>(0, bytes.size())] = *rc::gen::arbitrary<char>();
  }
  const auto decoded = decode_rows(bytes, {1});
  for (const stored_row& r : decoded.rows) encode_row(r);
}

TEST(EvidenceRows, RandomBytesAreNeverReadOutOfBounds) {
  std::mt19937 random(7);
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes(random() % 200, '\0');
    for (char& each : bytes) each = static_cast<char>(random());
    const auto decoded = decode_rows(bytes, {1});
    EXPECT_TRUE(bytes.empty() || decoded.broken || !decoded.rows.empty());
  }
}

TEST(EvidenceRows, ABadRowEndsTheDecodingAndIsNamed) {
  stored_row r;
  r.answer.reason = reason::renewed;
  std::string bytes = encode_row(r) + encode_row(r);
  const std::size_t second = bytes.size();
  bytes += encode_row(r);
  bytes[read_frame(bytes, second)->check_at + 4] = '\x7f';
  bytes[read_frame(bytes, second)->check_at + 5] = '\x7f';
  const auto decoded = decode_rows(bytes, {10});
  EXPECT_EQ(decoded.rows.size(), 2U);
  EXPECT_EQ(decoded.broken, row_number{12});
}

TEST(EvidenceRows, UnknownWordsAreBroken) {
  stored_row r;
  r.answer.reason = static_cast<reason>(65'000);
  EXPECT_TRUE(decode_rows(encode_row(r), {1}).broken);
  r.answer.reason = reason::none;
  r.input.kind = static_cast<event_kind>(99);
  EXPECT_TRUE(decode_rows(encode_row(r), {1}).broken);
  r.input.kind = event_kind::ack;
  r.answer.decision = static_cast<decision>(0);
  EXPECT_TRUE(decode_rows(encode_row(r), {1}).broken);
  r.answer.decision = decision::applied;
  EXPECT_FALSE(decode_rows(encode_row(r), {1}).broken);
}

/// A row of the group, as the sink is given it.
row renew_of(const event& in) {
  return {{1000},
          in.kind,
          origin::worker,
          &in,
          lease_state::active,
          {decision::accepted, reason::renewed, {}, {}},
          false,
          {}};
}

TEST(RowGroup, TheFirstRowNamesTheRowBeforeAndTheOthersFollow) {
  row_group group({tenant_id("t"), lease_id("l")}, {5}, {40}, {1000}, {});
  event in;
  in.kind = event_kind::renew;
  in.lease = lease_id("l");
  record after;
  after.state = lease_state::active;
  group.on_row(renew_of(in), after);
  group.on_row(renew_of(in), after);
  EXPECT_EQ(group.count(), 2);
  const auto rows = decode_rows(group.bytes(), {71}).rows;
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].prev_row.value, 40);
  EXPECT_EQ(rows[1].prev_row.value, 71);
  EXPECT_EQ(rows[1].ingress_at.ms, 1000);
  EXPECT_EQ(rows[1].policy.value, 5U);
}

TEST(RowGroup, RowsOfALeaseThatIsNotKnownAreNotLinked) {
  row_group group({tenant_id("t"), lease_id("l")}, {}, {}, {1000}, {});
  event in;
  in.kind = event_kind::renew;
  const record unknown;
  group.on_row(renew_of(in), unknown);
  group.on_row(renew_of(in), unknown);
  for (const auto& r : decode_rows(group.bytes(), {71}).rows) EXPECT_EQ(r.prev_row.value, 0);
}

TEST(RowGroup, AnAttachmentBelongsToTheNextRowAlone) {
  row_group group({tenant_id("t"), lease_id("l")}, {}, {}, {}, {});
  event in;
  group.attach("body");
  group.on_row(renew_of(in), {});
  group.on_row(renew_of(in), {});
  const auto rows = decode_rows(group.bytes(), {1}).rows;
  EXPECT_EQ(rows[0].attachment, "body");
  EXPECT_EQ(rows[1].attachment, "");
}

TEST(RowGroup, ARenewTakesNoMoreThan90Bytes) {
  row_group group({tenant_id("acme"), lease_id("job-000001")}, {~std::uint64_t{0}}, {1'000'000},
                  {1'700'000'000'000}, {});
  event in;
  in.kind = event_kind::renew;
  in.lease = lease_id("job-000001");
  in.gen.value = 3;
  in.from = holder("worker-1/000102030405060708090a0b0c0d0e0f");
  in.seq.value = 1000;
  in.sent_at.ms = 1'700'000'000'000 - 3;
  in.frame_id = 100'000;
  in.session_epoch = 12;
  record after;
  after.state = lease_state::active;
  auto what = renew_of(in);
  what.at.ms = 1'700'000'000'000;
  group.on_row(what, after);
  EXPECT_LE(group.bytes().size(), 90U);
}

RC_GTEST_PROP(PackedNumbers, AreReadBackAsTheyWereWritten, (std::int64_t a, std::uint64_t b)) {
  std::string bytes;
  put_signed(bytes, a);
  put_unsigned(bytes, b);
  put_text(bytes, "text");
  packed_reader in(bytes);
  RC_ASSERT(in.get_signed() == a);
  RC_ASSERT(in.get_unsigned() == b);
  RC_ASSERT(in.get_text() == "text");
  RC_ASSERT(in.finished());
}

TEST(PackedNumbers, ANumberOfMoreThan64BitsFails) {
  packed_reader eleven(std::string_view("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 11));
  eleven.get_unsigned();
  EXPECT_TRUE(eleven.failed());
  packed_reader high(std::string_view("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10));
  high.get_unsigned();
  EXPECT_TRUE(high.failed());
  packed_reader highest(std::string_view("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10));
  EXPECT_EQ(highest.get_unsigned(), ~std::uint64_t{0});
}

TEST(PackedNumbers, ATextLongerThanTheBytesFails) {
  packed_reader in(std::string_view("\xff\xff\xff\xff\x0fx", 6));
  EXPECT_EQ(in.get_text(), "");
  EXPECT_TRUE(in.failed());
  EXPECT_EQ(in.get_unsigned(), 0U);
}

fold::lease_image any_image() {
  fold::lease_image image;
  record& r = image.state;
  r.lease.value = *any_text();
  r.job.value = *any_text();
  r.kind = static_cast<lease_kind>(*rc::gen::inRange(0, 3));
  r.state = static_cast<lease_state>(*rc::gen::inRange(0, 14));
  r.gen.value = *any_number();
  r.held_by.value = *any_text();
  for (instant* each : {&r.issued_at, &r.acquired_at, &r.expires_at, &r.ack_deadline, &r.renew_time,
                        &r.cancel_requested_at, &r.cancel_acked_at, &r.cancel_deadline,
                        &r.last_sent, &r.next_offer_at, &r.reconcile_deadline}) {
    each->ms = *any_number();
  }
  r.lease_duration.ms = *any_number();
  r.acked = static_cast<ack_state>(*rc::gen::inRange(0, 5));
  r.renew_sequence.value = *any_number();
  r.progress_sequence.value = *any_number();
  r.progress_value = *any_text();
  r.terminal_result = static_cast<outcome>(*rc::gen::inRange(0, 4));
  r.terminal_detail = *any_text();
  if (*rc::gen::arbitrary<bool>()) r.reported = reported_result{outcome::failed, *any_text()};
  r.attempt = *any_number();
  r.losses = *any_number();
  for (int i = *rc::gen::inRange(0, 3); i > 0; --i) {
    r.unproven.push_back({{*any_number()}, holder(*any_text()), {*any_number()}});
  }
  r.unproven_nameless = *any_number();
  r.frozen = *rc::gen::arbitrary<bool>();
  r.graces = *any_number();
  r.reconcile_window_over = *rc::gen::arbitrary<bool>();
  for (int i = *rc::gen::inRange(0, 3); i > 0; --i) {
    r.deferred.push_back({any_event(), {*any_number()}});
  }
  for (int i = *rc::gen::inRange(0, 3); i > 0; --i) {
    remembered_request request;
    request.id.value = *any_text();
    request.kind = event_kind::revoke;
    request.gen.value = *any_number();
    request.from.value = *any_text();
    request.ending = outcome::cancelled;
    request.unknown_outcome = *any_text();
    request.detail = *any_text();
    request.force = *rc::gen::arbitrary<bool>();
    request.answered.value = *any_number();
    r.requests.push_back(request);
  }
  image.policy.value = *rc::gen::arbitrary<std::uint64_t>();
  image.last_row.value = *any_number();
  image.body = *any_text();
  return image;
}

RC_GTEST_PROP(RecordImage, EveryImageIsReadBackAsItWasWritten, ()) {
  const auto image = any_image();
  const auto read = decode_image(encode_image(image));
  RC_ASSERT(read.has_value());
  RC_ASSERT(read->state == image.state);
  RC_ASSERT(first_difference(read->state, image.state).empty());
  RC_ASSERT(read->policy == image.policy);
  RC_ASSERT(read->last_row == image.last_row);
  RC_ASSERT(read->body == image.body);
}

RC_GTEST_PROP(RecordImage, ACutImageIsRefusedWhereverItIsCut, ()) {
  const std::string bytes = encode_image(any_image());
  const auto size = *rc::gen::inRange<std::size_t>(0, bytes.size());
  RC_ASSERT(!decode_image(bytes.substr(0, size)));
}

RC_GTEST_PROP(RecordImage, TwoRecordsThatDifferHaveAFieldThatDiffers, ()) {
  const auto a = any_image();
  const auto b = any_image();
  RC_ASSERT((a.state == b.state) == first_difference(a.state, b.state).empty());
}

TEST(RecordImage, AnotherFormatIsRefused) {
  std::string bytes = encode_image({});
  ASSERT_TRUE(decode_image(bytes));
  bytes.front() = 2;
  EXPECT_FALSE(decode_image(bytes));
}

TEST(PolicyId, DependsOnTheContentAlone) {
  policy a;
  policy b;
  EXPECT_EQ(id_of(a), id_of(b));
  b.lease_duration.ms += 1;
  EXPECT_NE(id_of(a), id_of(b));
  EXPECT_EQ(policy_id_from_text(to_text(id_of(a))), id_of(a));
}

TEST(PolicyId, IsTheSameInEveryBuild) { EXPECT_EQ(to_text(id_of(policy{})), "543cef82fafdbb2d"); }

TEST(PolicyId, IsReadFromSixteenLowerCaseDigitsAlone) {
  for (const char* text :
       {"", "0", "00000000000000000", "000000000000000g", "00000000000000AB", "+000000000000001"}) {
    EXPECT_FALSE(policy_id_from_text(text)) << text;
  }
}

TEST(PolicyText, EveryKeyIsReadBack) {
  for (const policy_key& key : policy_keys()) {
    policy changed;
    const auto value = key.get(changed);
    if (std::holds_alternative<std::int64_t>(value)) {
      ASSERT_TRUE(key.set(changed, std::int64_t{4242}));
    } else {
      const std::string words(key.words);
      ASSERT_TRUE(key.set(changed, words.substr(words.find('|') + 1))) << key.name << words;
    }
    EXPECT_EQ(policy_from_text(canonical_text(changed)), changed) << key.name;
    EXPECT_NE(id_of(changed), id_of(policy{})) << key.name;
  }
}

TEST(PolicyText, UnknownKeysAndValuesAreRefused) {
  for (const char* text : {"nonsense=1\n", "lease_duration_ms=\n", "lease_duration_ms=x\n",
                           "lease_duration_ms=1x\n", "on_expiry=never\n", "lease_duration_ms\n"}) {
    EXPECT_FALSE(policy_from_text(text)) << text;
  }
  EXPECT_EQ(policy_from_text(""), policy{});
}

}  // namespace
}  // namespace leasehold::protocol
