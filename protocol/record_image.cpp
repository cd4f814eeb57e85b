#include "leasehold/protocol/record_image.hpp"

#include "leasehold/protocol/packed.hpp"

namespace leasehold::protocol {

namespace {

constexpr std::uint8_t image_format = 1;

/// Elements one after the other; text is none.
template <class T>
concept list = requires(T& values) {
  values.emplace_back();
};

/// Writes fields in the order in which `get` below reads them.
class image_writer {
 public:
  explicit image_writer(std::string& out) : out_(out) {}

  void operator()(std::int64_t value) { put_signed(out_, value); }
  void operator()(bool value) { put_byte(out_, value ? 1 : 0); }
  void operator()(instant value) { put_signed(out_, value.ms); }
  void operator()(duration value) { put_signed(out_, value.ms); }
  void operator()(generation value) { put_signed(out_, value.value); }
  void operator()(sequence value) { put_signed(out_, value.value); }
  void operator()(row_number value) { put_signed(out_, value.value); }
  void operator()(reason value) { put_unsigned(out_, static_cast<std::uint64_t>(value)); }
  void operator()(std::string_view value) { put_text(out_, value); }
  template <class Tag>
  void operator()(const text_id<Tag>& value) {
    put_text(out_, value.value);
  }
  void operator()(event_kind value) { put_byte(out_, static_cast<std::uint8_t>(value)); }
  void operator()(outcome value) { put_byte(out_, static_cast<std::uint8_t>(value)); }
  void operator()(lease_kind value) { put_byte(out_, static_cast<std::uint8_t>(value)); }
  void operator()(lease_state value) { put_byte(out_, static_cast<std::uint8_t>(value)); }
  void operator()(ack_state value) { put_byte(out_, static_cast<std::uint8_t>(value)); }
  template <list List>
  void operator()(const List& values) {
    put_unsigned(out_, values.size());
    for (const auto& each : values) visit(*this, each);
  }
  template <class T>
  void operator()(const rare<T>& value) {
    (*this)(value.has_value());
    if (value) visit(*this, *value);
  }

 private:
  std::string& out_;
};

class image_reader {
 public:
  explicit image_reader(std::string_view bytes) : in_(bytes) {}
  [[nodiscard]] bool finished() const { return in_.finished(); }
  std::uint64_t get_unsigned() { return in_.get_unsigned(); }

  void operator()(std::int64_t& value) { value = in_.get_signed(); }
  void operator()(bool& value) {
    const std::uint8_t byte = in_.get_byte();
    if (byte > 1) in_.fail();
    value = byte == 1;
  }
  void operator()(instant& value) { value.ms = in_.get_signed(); }
  void operator()(duration& value) { value.ms = in_.get_signed(); }
  void operator()(generation& value) { value.value = in_.get_signed(); }
  void operator()(sequence& value) { value.value = in_.get_signed(); }
  void operator()(row_number& value) { value.value = in_.get_signed(); }
  void operator()(reason& value) {
    value = in_.get_enum(static_cast<reason>(0xffffU));
    if (value != reason::none && find_reason(value) == nullptr) in_.fail();
  }
  void operator()(std::string& value) { value = in_.get_text(); }
  template <class Tag>
  void operator()(text_id<Tag>& value) {
    value.value = in_.get_text();
  }
  void operator()(event_kind& value) {
    value = static_cast<event_kind>(in_.get_byte());
    if (word(value).empty()) in_.fail();
  }
  void operator()(outcome& value) { value = in_.get_enum(outcome::cancelled); }
  void operator()(lease_kind& value) { value = in_.get_enum(lease_kind::lock); }
  void operator()(lease_state& value) { value = in_.get_enum(lease_state::cancelled); }
  void operator()(ack_state& value) { value = in_.get_enum(ack_state::withdrawn); }
  template <list List>
  void operator()(List& values) {
    // An element takes more than one byte, so that a wrong count cannot ask for much memory.
    const std::uint64_t count = in_.get_unsigned();
    if (count > in_.left()) in_.fail();
    for (std::uint64_t i = 0; i < count && !in_.failed(); ++i) visit(*this, values.emplace_back());
  }
  template <class T>
  void operator()(rare<T>& value) {
    bool there = false;
    (*this)(there);
    if (there) visit(*this, value.emplace());
  }

 private:
  packed_reader in_;
};

/// The fields of each part, once for both directions. `T` is const or not.
template <class Field, class T>
void visit_event(Field& field, T& e) {
  field(e.kind), field(e.lease), field(e.job), field(e.gen), field(e.from), field(e.seq);
  field(e.sent_at), field(e.value), field(e.ending), field(e.unknown_outcome), field(e.detail);
  field(e.retryable), field(e.force), field(e.request), field(e.frame_id);
  field(e.session_epoch), field(e.trace_id);
}

template <class Field, class T>
void visit(Field& field, T& part) {
  using plain = std::remove_const_t<T>;
  if constexpr (std::is_same_v<plain, unproven_generation>) {
    field(part.gen), field(part.from), field(part.last_sent);
  } else if constexpr (std::is_same_v<plain, deferred_frame>) {
    visit_event(field, part.frame), field(part.row);
  } else if constexpr (std::is_same_v<plain, remembered_request>) {
    field(part.id), field(part.kind), field(part.gen), field(part.from), field(part.ending);
    field(part.unknown_outcome), field(part.detail), field(part.force), field(part.answered);
  } else if constexpr (std::is_same_v<plain, reason_count>) {
    field(part.reason), field(part.number);
  } else {
    static_assert(std::is_same_v<plain, reported_result>);
    field(part.ending), field(part.detail);
  }
}

template <class Field, class T>
void visit_record(Field& field, T& r) {
  field(r.lease), field(r.job), field(r.kind), field(r.state), field(r.gen), field(r.held_by);
  field(r.issued_at), field(r.acquired_at), field(r.lease_duration), field(r.expires_at);
  field(r.ack_deadline), field(r.acked), field(r.renew_sequence), field(r.renew_time);
  field(r.progress_sequence), field(r.progress_value), field(r.cancel_requested_at);
  field(r.cancel_acked_at), field(r.cancel_deadline), field(r.terminal_result);
  field(r.terminal_detail), field(r.reported), field(r.attempt), field(r.losses);
  field(r.last_sent), field(r.unproven), field(r.unproven_nameless), field(r.frozen);
  field(r.next_offer_at), field(r.reconcile_deadline), field(r.graces);
  field(r.reconcile_window_over), field(r.deferred), field(r.requests);
}

}  // namespace

std::string encode_image(const fold::lease_image& image) {
  std::string bytes;
  put_byte(bytes, image_format);
  image_writer field(bytes);
  visit_record(field, image.state);
  put_unsigned(bytes, image.policy.value);
  field(image.last_row);
  field(std::string_view(image.body));
  field(image.last_at);
  field(image.base_row);
  field(image.counts);
  return bytes;
}

std::optional<fold::lease_image> decode_image(std::string_view bytes) {
  if (bytes.empty() || static_cast<std::uint8_t>(bytes.front()) != image_format)
    return std::nullopt;
  fold::lease_image image;
  image_reader field(bytes.substr(1));
  visit_record(field, image.state);
  image.policy.value = field.get_unsigned();
  field(image.last_row);
  field(image.body);
  field(image.last_at);
  field(image.base_row);
  field(image.counts);
  image.counts.shrink_to_fit();
  if (!field.finished()) return std::nullopt;
  return image;
}

std::string encode_base(const history_base& what) {
  std::string bytes;
  put_text(bytes, canonical_text(what.chosen));
  put_text(bytes, encode_image(what.image));
  const std::uint64_t hash = hash_of(bytes);
  put_unsigned(bytes, hash);
  return bytes;
}

std::optional<history_base> decode_base(std::string_view bytes) {
  packed_reader in(bytes);
  const auto chosen = policy_from_text(in.get_text());
  auto image = decode_image(in.get_text());
  const std::string_view hashed = bytes.substr(0, bytes.size() - in.left());
  const std::uint64_t hash = in.get_unsigned();
  if (!in.finished() || !chosen || !image || hash != hash_of(hashed)) return std::nullopt;
  return history_base{*chosen, std::move(*image)};
}

std::string encode_base_row(const lease_key& key, const history_base& what, instant at) {
  stored_row r;
  r.key = key;
  r.prev_row = what.image.last_row;
  r.policy = what.image.policy;
  r.at = at;
  r.input.kind = event_kind::base;
  r.state_before = what.image.state.state;
  r.answer = {decision::applied, reason::history_based, {}, {}};
  r.attachment = encode_base(what);
  return encode_row(r);
}

std::string_view first_difference(const record& a, const record& b) {
#define LEASEHOLD_DIFFERS(field) \
  if (!(a.field == b.field)) return #field
  LEASEHOLD_DIFFERS(lease);
  LEASEHOLD_DIFFERS(job);
  LEASEHOLD_DIFFERS(kind);
  LEASEHOLD_DIFFERS(state);
  LEASEHOLD_DIFFERS(gen);
  LEASEHOLD_DIFFERS(held_by);
  LEASEHOLD_DIFFERS(issued_at);
  LEASEHOLD_DIFFERS(acquired_at);
  LEASEHOLD_DIFFERS(lease_duration);
  LEASEHOLD_DIFFERS(expires_at);
  LEASEHOLD_DIFFERS(ack_deadline);
  LEASEHOLD_DIFFERS(acked);
  LEASEHOLD_DIFFERS(renew_sequence);
  LEASEHOLD_DIFFERS(renew_time);
  LEASEHOLD_DIFFERS(progress_sequence);
  LEASEHOLD_DIFFERS(progress_value);
  LEASEHOLD_DIFFERS(cancel_requested_at);
  LEASEHOLD_DIFFERS(cancel_acked_at);
  LEASEHOLD_DIFFERS(cancel_deadline);
  LEASEHOLD_DIFFERS(terminal_result);
  LEASEHOLD_DIFFERS(terminal_detail);
  LEASEHOLD_DIFFERS(reported);
  LEASEHOLD_DIFFERS(attempt);
  LEASEHOLD_DIFFERS(losses);
  LEASEHOLD_DIFFERS(last_sent);
  LEASEHOLD_DIFFERS(unproven);
  LEASEHOLD_DIFFERS(unproven_nameless);
  LEASEHOLD_DIFFERS(frozen);
  LEASEHOLD_DIFFERS(next_offer_at);
  LEASEHOLD_DIFFERS(reconcile_deadline);
  LEASEHOLD_DIFFERS(graces);
  LEASEHOLD_DIFFERS(reconcile_window_over);
  LEASEHOLD_DIFFERS(deferred);
  LEASEHOLD_DIFFERS(requests);
#undef LEASEHOLD_DIFFERS
  return {};
}

}  // namespace leasehold::protocol
