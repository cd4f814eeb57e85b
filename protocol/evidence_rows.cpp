// Evidence rows as bytes. A row is framed as: length (varint), check (4 bytes, filled in by the
// log), body. A body is a mask of the fields that are there, the fields that every row has, then
// the masked ones in the order of their bits: a field at its default costs nothing.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "leasehold/protocol/evidence.hpp"
#include "leasehold/protocol/packed.hpp"

namespace leasehold::protocol {

namespace {

/// The bits of the mask, those of a renew first: its mask takes two bytes.
enum field : std::uint32_t {
  has_input_ = 1U << 0U,
  lease_as_key_ = 1U << 1U,
  ingress_as_at_ = 1U << 2U,
  prev_is_before_ = 1U << 3U,
  prev_row_ = 1U << 4U,
  policy_ = 1U << 5U,
  generation_ = 1U << 6U,
  holder_with_incarnation_ = 1U << 7U,
  sequence_ = 1U << 8U,
  sent_at_ = 1U << 9U,
  frame_id_ = 1U << 10U,
  session_epoch_ = 1U << 11U,
  value_ = 1U << 12U,
  derived_ = 1U << 13U,
  flags_ = 1U << 14U,
  holder_ = 1U << 15U,
  outcome_ = 1U << 16U,
  retryable_ = 1U << 17U,
  detail_ = 1U << 18U,
  request_ = 1U << 19U,
  trace_id_ = 1U << 20U,
  fired_at_ = 1U << 21U,
  ingress_at_ = 1U << 22U,
  attachment_ = 1U << 23U,
  job_as_key_ = 1U << 24U,
  job_ = 1U << 25U,
  lease_ = 1U << 26U,
  force_ = 1U << 27U,
  unknown_outcome_ = 1U << 28U,
  rule_version_ = 1U << 29U,
  floor_ = 1U << 30U,
  all_fields_ = (1U << 31U) - 1U,
};

/// The version that a row has which names none. It belongs to the format and never changes.
constexpr std::int64_t unnamed_rule_version = 1;
constexpr std::size_t check_bytes = 4;
constexpr std::size_t incarnation_bytes = 16;

/// A row by reference, so that live rows are encoded where they are.
struct row_view {
  const lease_key& key;
  policy_id policy;
  bool prev_is_before;  ///< the lease's row before is the row before in the log
  row_number prev_row;
  instant at;
  instant ingress_at;
  instant fired_at;
  event_kind kind;
  const event* input;
  bool derived;
  lease_state state_before;
  const verdict& answer;
  std::int64_t rule_version;
  std::string_view attachment;
  generation floor;
};

constexpr std::int64_t between(std::int64_t from, std::int64_t to) noexcept {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(to) -
                                   static_cast<std::uint64_t>(from));
}

constexpr std::int64_t onward(std::int64_t from, std::int64_t by) noexcept {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(from) +
                                   static_cast<std::uint64_t>(by));
}

constexpr int hex_value(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

/// A worker's holder ends with `/` and 128 bits in hex, which are stored as bits.
bool read_incarnation(std::string_view holder, std::array<char, incarnation_bytes>& bits) noexcept {
  const std::size_t tail = 2 * incarnation_bytes + 1;
  if (holder.size() < tail || holder[holder.size() - tail] != '/') return false;
  const char* digits = holder.data() + (holder.size() - tail + 1);
  for (std::size_t i = 0; i < incarnation_bytes; ++i) {
    const int high = hex_value(digits[2 * i]);
    const int low = hex_value(digits[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    bits[i] = static_cast<char>(high * 16 + low);
  }
  return true;
}

std::string holder_of(std::string_view principal, std::string_view bits) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  text.reserve(principal.size() + 1 + 2 * bits.size());
  text += principal;
  text += '/';
  for (const char each : bits) {
    const auto byte = static_cast<unsigned char>(each);
    text += digits[byte >> 4U];
    text += digits[byte & 15U];
  }
  return text;
}

constexpr std::uint8_t bits_of(const row_flags& f) noexcept {
  return static_cast<std::uint8_t>((f.stale_generation ? 1U : 0U) | (f.late_progress ? 2U : 0U) |
                                   (f.lease_expired ? 4U : 0U) | (f.ownership_conflict ? 8U : 0U));
}

constexpr row_flags flags_of(std::uint8_t bits) noexcept {
  return {(bits & 1U) != 0, (bits & 2U) != 0, (bits & 4U) != 0, (bits & 8U) != 0};
}

constexpr std::uint32_t when(bool there, field bit) noexcept { return there ? bit : 0U; }

std::uint32_t mask_of_input(const row_view& r, bool packed_holder) noexcept {
  const event& in = *r.input;
  std::uint32_t mask = has_input_;
  mask |= in.lease == r.key.lease ? lease_as_key_ : when(!in.lease.empty(), lease_);
  mask |= when(in.gen.value != 0, generation_);
  mask |= packed_holder ? holder_with_incarnation_ : when(!in.from.empty(), holder_);
  mask |= when(in.seq.value != 0, sequence_) | when(in.sent_at.ms != 0, sent_at_);
  mask |= when(in.frame_id != 0, frame_id_) | when(in.session_epoch != 0, session_epoch_);
  mask |= when(!in.value.empty(), value_) | when(in.ending != outcome::none, outcome_);
  mask |= when(in.retryable, retryable_) | when(!in.detail.empty(), detail_);
  mask |= when(!in.request.empty(), request_) | when(!in.trace_id.empty(), trace_id_);
  if (!in.job.empty()) mask |= in.job.value == r.key.lease.value ? job_as_key_ : job_;
  mask |= when(in.force, force_) | when(!in.unknown_outcome.empty(), unknown_outcome_);
  return mask;
}

std::uint32_t mask_of(const row_view& r, bool packed_holder) noexcept {
  std::uint32_t mask = r.input != nullptr ? mask_of_input(r, packed_holder) : 0U;
  if (r.ingress_at.ms != 0) mask |= r.ingress_at == r.at ? ingress_as_at_ : ingress_at_;
  mask |= r.prev_is_before ? prev_is_before_ : when(r.prev_row.value != 0, prev_row_);
  mask |= when(r.policy.value != 0, policy_) | when(r.derived, derived_);
  mask |= when(r.answer.flags != row_flags{}, flags_) | when(r.fired_at.ms != 0, fired_at_);
  mask |= when(!r.attachment.empty(), attachment_) | when(r.floor.value != 0, floor_);
  mask |= when(r.rule_version != unnamed_rule_version, rule_version_);
  return mask;
}

void put_policy(std::string& out, policy_id id) {
  std::array<char, 8> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(id.value >> (8 * i));
  out.append(bytes.data(), bytes.size());
}

void put_input(std::string& out, const row_view& r, std::uint32_t mask,
               const std::array<char, incarnation_bytes>& bits) {
  const event& in = *r.input;
  const auto has = [mask](field bit) { return (mask & bit) != 0; };
  if (has(generation_)) put_signed(out, in.gen.value);
  if (has(holder_with_incarnation_)) {
    const std::size_t principal = in.from.value.size() - 2 * incarnation_bytes - 1;
    put_text(out, std::string_view(in.from.value).substr(0, principal));
    out.append(bits.data(), bits.size());
  }
  if (has(sequence_)) put_signed(out, in.seq.value);
  if (has(sent_at_)) put_signed(out, between(r.at.ms, in.sent_at.ms));
  if (has(frame_id_)) put_signed(out, in.frame_id);
  if (has(session_epoch_)) put_signed(out, in.session_epoch);
  if (has(value_)) put_text(out, in.value);
  if (has(holder_)) put_text(out, in.from.value);
  if (has(outcome_)) put_byte(out, static_cast<std::uint8_t>(in.ending));
  if (has(detail_)) put_text(out, in.detail);
  if (has(request_)) put_text(out, in.request.value);
  if (has(trace_id_)) put_text(out, in.trace_id);
  if (has(job_)) put_text(out, in.job.value);
  if (has(lease_)) put_text(out, in.lease.value);
  if (has(unknown_outcome_)) put_text(out, in.unknown_outcome);
}

void put_body(std::string& out, const row_view& r) {
  std::array<char, incarnation_bytes> bits;
  const bool packed_holder = r.input != nullptr && read_incarnation(r.input->from.value, bits);
  const std::uint32_t mask = mask_of(r, packed_holder);
  put_unsigned(out, mask);
  put_text(out, r.key.tenant.value);
  put_text(out, r.key.lease.value);
  put_unsigned(out, static_cast<std::uint64_t>(r.at.ms));
  put_byte(out, static_cast<std::uint8_t>(r.kind));
  put_byte(out, static_cast<std::uint8_t>(r.state_before));
  put_byte(out, static_cast<std::uint8_t>(r.answer.decision));
  put_unsigned(out, static_cast<std::uint64_t>(r.answer.reason));
  put_unsigned(out, static_cast<std::uint64_t>(r.answer.rule));
  if ((mask & prev_row_) != 0) put_signed(out, r.prev_row.value);
  if ((mask & policy_) != 0) put_policy(out, r.policy);
  if ((mask & flags_) != 0) put_byte(out, bits_of(r.answer.flags));
  if ((mask & fired_at_) != 0) put_signed(out, between(r.at.ms, r.fired_at.ms));
  if ((mask & ingress_at_) != 0) put_signed(out, between(r.at.ms, r.ingress_at.ms));
  if ((mask & rule_version_) != 0) put_signed(out, r.rule_version);
  if ((mask & floor_) != 0) put_signed(out, r.floor.value);
  if ((mask & has_input_) != 0) put_input(out, r, mask, bits);
  if ((mask & attachment_) != 0) put_text(out, r.attachment);
}

/// The body is written behind one byte of length, which nearly all rows need; a longer one is
/// moved.
void put_framed(std::string& out, const row_view& r) {
  const std::size_t begin = out.size();
  out.append(1 + check_bytes, '\0');
  put_body(out, r);
  const std::size_t size = out.size() - begin - 1 - check_bytes;
  if (size < 0x80U) {
    out[begin] = static_cast<char>(size);
    return;
  }
  std::string length;
  put_unsigned(length, size);
  out.replace(begin, 1, length);
}

void get_input(packed_reader& in, std::uint32_t mask, stored_row& r) {
  const auto has = [mask](field bit) { return (mask & bit) != 0; };
  event& what = r.input;
  if (has(lease_as_key_)) what.lease = r.key.lease;
  if (has(generation_)) what.gen.value = in.get_signed();
  if (has(holder_with_incarnation_)) {
    const std::string_view principal = in.get_text();
    what.from.value = holder_of(principal, in.get_bytes(incarnation_bytes));
  }
  if (has(sequence_)) what.seq.value = in.get_signed();
  if (has(sent_at_)) what.sent_at.ms = onward(r.at.ms, in.get_signed());
  if (has(frame_id_)) what.frame_id = in.get_signed();
  if (has(session_epoch_)) what.session_epoch = in.get_signed();
  if (has(value_)) what.value = in.get_text();
  if (has(holder_)) what.from.value = in.get_text();
  if (has(outcome_)) what.ending = in.get_enum(outcome::cancelled);
  if (has(detail_)) what.detail = in.get_text();
  if (has(request_)) what.request.value = in.get_text();
  if (has(trace_id_)) what.trace_id = in.get_text();
  if (has(job_as_key_)) what.job.value = r.key.lease.value;
  if (has(job_)) what.job.value = in.get_text();
  if (has(lease_)) what.lease.value = in.get_text();
  if (has(unknown_outcome_)) what.unknown_outcome = in.get_text();
  what.retryable = has(retryable_);
  what.force = has(force_);
}

event_kind get_kind(packed_reader& in) {
  const auto kind = static_cast<event_kind>(in.get_byte());
  if (word(kind).empty()) in.fail();
  return kind;
}

reason get_reason(packed_reader& in) {
  const auto code = in.get_enum(static_cast<reason>(0xffffU));
  if (code != reason::none && find_reason(code) == nullptr) in.fail();
  return code;
}

decision get_decision(packed_reader& in) {
  const auto what = in.get_enum(decision::deferred);
  if (static_cast<int>(what) == 0) in.fail();
  return what;
}

policy_id get_policy(packed_reader& in) {
  policy_id id;
  const std::string_view bytes = in.get_bytes(8);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    id.value |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  return id;
}

}  // namespace

std::optional<stored_row> decode_row(std::string_view body, row_number number) {
  packed_reader in(body);
  stored_row r;
  const std::uint64_t mask64 = in.get_unsigned();
  if (mask64 > all_fields_) return std::nullopt;
  const auto mask = static_cast<std::uint32_t>(mask64);
  r.row = number;
  r.key.tenant.value = in.get_text();
  r.key.lease.value = in.get_text();
  r.at.ms = static_cast<std::int64_t>(in.get_unsigned());
  const event_kind kind = get_kind(in);
  r.state_before = in.get_enum(lease_state::cancelled);
  r.answer.decision = get_decision(in);
  r.answer.reason = get_reason(in);
  r.answer.rule = in.get_enum(static_cast<rule_id>(0xffffU));
  if ((mask & prev_is_before_) != 0) r.prev_row.value = number.value - 1;
  if ((mask & prev_row_) != 0) r.prev_row.value = in.get_signed();
  if ((mask & policy_) != 0) r.policy = get_policy(in);
  if ((mask & flags_) != 0) r.answer.flags = flags_of(in.get_byte());
  if ((mask & fired_at_) != 0) r.fired_at.ms = onward(r.at.ms, in.get_signed());
  if ((mask & ingress_as_at_) != 0) r.ingress_at = r.at;
  if ((mask & ingress_at_) != 0) r.ingress_at.ms = onward(r.at.ms, in.get_signed());
  r.rule_version = (mask & rule_version_) != 0 ? in.get_signed() : unnamed_rule_version;
  if ((mask & floor_) != 0) r.floor.value = in.get_signed();
  r.derived = (mask & derived_) != 0;
  r.has_input = (mask & has_input_) != 0;
  if (r.has_input) get_input(in, mask, r);
  r.input.kind = kind;
  if ((mask & attachment_) != 0) r.attachment = in.get_text();
  if (!in.finished()) return std::nullopt;
  return r;
}

std::optional<framed_row> read_frame(std::string_view bytes, std::size_t at) noexcept {
  if (at >= bytes.size()) return std::nullopt;
  packed_reader in(bytes.substr(at));
  const std::uint64_t size = in.get_unsigned();
  const std::size_t check_at = bytes.size() - in.left();
  const std::string_view check = in.get_bytes(check_bytes);
  if (in.failed() || size == 0 || size > in.left()) return std::nullopt;
  framed_row found{check_at, 0, in.get_bytes(static_cast<std::size_t>(size)), 0};
  found.end = bytes.size() - in.left();
  for (std::size_t i = 0; i < check_bytes; ++i) {
    found.check |= static_cast<std::uint32_t>(static_cast<unsigned char>(check[i])) << (8 * i);
  }
  return found;
}

row_group::row_group(lease_key key, policy_id policy, row_number last_row, instant ingress,
                     instant fired_at)
    : key_(std::move(key)),
      policy_(policy),
      last_row_(last_row),
      ingress_(ingress),
      fired_at_(fired_at) {}

void row_group::attach(std::string bytes) { attachment_ = std::move(bytes); }

void row_group::on_row(const row& what, const record& after) {
  const bool timed = what.kind == event_kind::expire || what.kind == event_kind::reconcile_close;
  put_framed(bytes_, {key_, policy_, before_is_mine_, last_row_, what.at,
                      what.input != nullptr ? ingress_ : instant{}, timed ? fired_at_ : instant{},
                      what.kind, what.input, what.derived, what.state_before, what.answer,
                      rule_version, attachment_, what.floor});
  ++count_;
  // The rows of a lease are linked from the one on that made it known.
  before_is_mine_ = after.known();
  last_row_ = {};
  attachment_.clear();
}

void row_group::count(const counted_frames& what, instant at, const record& r) {
  const std::string counted = to_text(what);
  put_framed(bytes_, {key_,
                      policy_,
                      before_is_mine_,
                      last_row_,
                      at,
                      {},
                      {},
                      event_kind::counted,
                      nullptr,
                      false,
                      r.state,
                      {what.decision, what.reason, {}, {}},
                      rule_version,
                      counted,
                      {}});
  ++count_;
  before_is_mine_ = r.known();
  last_row_ = {};
}

std::string to_text(const counted_frames& what) {
  std::string text;
  const auto line = [&text](std::string_view key, std::string_view value) {
    text.append(key).append("=").append(value).append("\n");
  };
  line("generation", std::to_string(what.gen.value));
  line("kind", word(what.kind));
  line("number", std::to_string(what.number));
  line("first_sequence", std::to_string(what.first.value));
  line("last_sequence", std::to_string(what.last.value));
  line("hash", to_text(policy_id{what.hash}));
  return text;
}

std::string encode_row(const stored_row& r) {
  std::string bytes;
  put_framed(bytes, {r.key, r.policy, false, r.prev_row, r.at, r.ingress_at, r.fired_at,
                     r.input.kind, r.has_input ? &r.input : nullptr, r.derived, r.state_before,
                     r.answer, r.rule_version, r.attachment, r.floor});
  return bytes;
}

std::string encode_policy_row(const policy& chosen, instant at) {
  stored_row r;
  r.policy = id_of(chosen);
  r.at = at;
  r.input.kind = event_kind::policy;
  r.answer = {decision::applied, reason::none, {}, {}};
  r.attachment = canonical_text(chosen);
  return encode_row(r);
}

std::string encode_clock_anchored_row(std::string_view basis, instant at) {
  stored_row r;
  r.at = at;
  r.input.kind = event_kind::clock_anchored;
  r.answer = {decision::applied, reason::clock_anchored, {}, {}};
  r.attachment = basis;
  return encode_row(r);
}

std::string encode_forget_row(const lease_key& key, row_number last_row, const record& r,
                              instant at) {
  stored_row forgotten;
  forgotten.key = key;
  forgotten.prev_row = last_row;
  forgotten.at = at;
  forgotten.floor = r.gen;
  forgotten.input.kind = event_kind::forget;
  forgotten.state_before = r.state;
  forgotten.answer = {decision::applied, reason::forgotten, {}, {}};
  return encode_row(forgotten);
}

namespace {

constexpr std::string_view grants_from_key = "grants_from=";

stored_row restore_row(instant grants_from, instant at) {
  stored_row r;
  r.at = at;
  r.input.kind = event_kind::restore;
  r.answer = {decision::applied, reason::backup_restored, {}, {}};
  r.attachment = grants_from_text(grants_from);
  return r;
}

}  // namespace

std::string grants_from_text(instant grants_from) {
  return std::string(grants_from_key) + std::to_string(grants_from.ms);
}

std::string encode_restore_row(instant grants_from, instant at) {
  return encode_row(restore_row(grants_from, at));
}

std::string encode_restored_lease_row(const lease_key& key, policy_id policy, row_number last_row,
                                      lease_state state, instant grants_from, instant at) {
  stored_row r = restore_row(grants_from, at);
  r.key = key;
  r.policy = policy;
  r.prev_row = last_row;
  r.state_before = state;
  return encode_row(r);
}

std::optional<instant> grants_from_of(std::string_view attachment) {
  if (!attachment.starts_with(grants_from_key)) return std::nullopt;
  attachment.remove_prefix(grants_from_key.size());
  instant found;
  const char* end = attachment.data() + attachment.size();
  const auto read = std::from_chars(attachment.data(), end, found.ms);
  if (read.ec != std::errc{} || read.ptr != end || found.ms < 0) return std::nullopt;
  return found;
}

void count_reason(reason_counts& counts, reason why, std::int64_t number) {
  const auto place = std::lower_bound(
      counts.begin(), counts.end(), why,
      [](const reason_count& each, reason wanted) { return each.reason < wanted; });
  if (place != counts.end() && place->reason == why) {
    place->number += number;
  } else {
    // There are few and they stay for the life of the lease, so that room is made for one more.
    const auto index = place - counts.begin();
    counts.reserve(counts.size() + 1);
    counts.insert(counts.begin() + index, {why, number});
  }
}

void image_rows::on_row(const row& what, const record& after) {
  to_.on_row(what, after);
  if (!after.known()) return;
  image_.last_at = what.at;
  count_reason(image_.counts, what.answer.reason);
}

decoded_rows decode_rows(std::string_view bytes, row_number first) {
  decoded_rows out;
  row_number number = first;
  for (std::size_t at = 0; at < bytes.size(); ++number.value) {
    const auto framed = read_frame(bytes, at);
    auto r = framed ? decode_row(framed->body, number) : std::nullopt;
    if (!r) {
      out.broken = number;
      return out;
    }
    out.rows.push_back(std::move(*r));
    at = framed->end;
  }
  return out;
}

}  // namespace leasehold::protocol
