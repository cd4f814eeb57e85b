#include <algorithm>
#include <boost/algorithm/hex.hpp>
#include <boost/json.hpp>
#include <limits>

#include "leasehold/protocol/record_image.hpp"
#include "src/store/evidence_json.hpp"

namespace leasehold::storage {

namespace {

namespace json = boost::json;
using protocol::cell;
using protocol::event_kind;
using protocol::stored_row;

/// Reads fields of one object and keeps the first thing that is wrong.
class fields {
 public:
  explicit fields(const json::object& line) : line_(line) {}

  [[nodiscard]] const std::string& wrong() const noexcept { return wrong_; }
  void complain(std::string_view name, std::string_view how) {
    if (wrong_.empty()) wrong_ = "'" + std::string(name) + "' " + std::string(how);
  }

  std::int64_t number(std::string_view name) {
    const json::value* value = find(name);
    if (value == nullptr) return 0;
    if (const auto* whole = value->if_int64()) return *whole;
    complain(name, "is not a whole number");
    return 0;
  }

  bool truth(std::string_view name) {
    const json::value* value = find(name);
    if (value == nullptr) return false;
    if (const bool* said = value->if_bool()) return *said;
    complain(name, "is not true or false");
    return false;
  }

  std::string text(std::string_view name) {
    const json::value* value = find(name);
    if (value == nullptr) return {};
    if (const auto* said = value->if_string()) return std::string(*said);
    complain(name, "is not text");
    return {};
  }

  /// A word of a known vocabulary.
  template <class Word>
  auto word(std::string_view name, Word from_word) {
    const std::string said = text(name);
    auto known = from_word(std::string_view(said));
    if (!known) complain(name, "has the unknown word '" + said + "'");
    return known.value_or(typename decltype(known)::value_type{});
  }

  cell any(std::string_view name) {
    const json::value* value = find(name);
    if (value == nullptr) return {};
    if (const auto* whole = value->if_int64()) return *whole;
    if (const bool* said = value->if_bool()) return *said;
    if (const auto* said = value->if_string()) return std::string(*said);
    complain(name, "is neither a whole number, nor true or false, nor text");
    return {};
  }

 private:
  const json::value* find(std::string_view name) {
    const json::value* value = line_.if_contains(name);
    if (value == nullptr) complain(name, "is missing");
    return value;
  }

  const json::object& line_;
  std::string wrong_;
};

std::optional<protocol::rule_id> rule_from_word(std::string_view text) {
  if (text.empty() || text == protocol::word(protocol::rule_id::none)) {
    return protocol::rule_id::none;
  }
  for (const protocol::rule_id each : protocol::all_rules()) {
    if (protocol::word(each) == text) return each;
  }
  return std::nullopt;
}

std::optional<protocol::reason> reason_from(std::string_view text) {
  if (text.empty() || text == protocol::word(protocol::reason::none)) {
    return protocol::reason::none;
  }
  return protocol::reason_from_word(text);
}

/// The coordinator's own rows have no input; a resolve is one where it is not an operator's.
bool has_input(event_kind kind, std::string_view origin) {
  if (kind == event_kind::recover || kind >= event_kind::activate) return false;
  return kind != event_kind::resolve || origin != protocol::word(protocol::origin::coordinator);
}

void read_input(fields& from, stored_row& r) {
  protocol::event& in = r.input;
  in.lease = r.key.lease;
  in.gen.value = from.number("frame_generation");
  in.from.value = from.text("frame_holder");
  in.seq.value = from.number("frame_sequence");
  in.sent_at.ms = from.number("sent_at");
  in.value = from.text("frame_value");
  in.detail = from.text("frame_detail");
  in.retryable = from.truth("frame_retryable");
  in.force = from.truth("force");
  in.request.value = from.text("request_id");
  in.frame_id = from.number("frame_id");
  in.session_epoch = from.number("session_epoch");
  in.trace_id = from.text("trace_id");
  const std::string ending = from.text("frame_outcome");
  if (const auto known = protocol::outcome_from_word(ending)) in.ending = *known;
  if (protocol::word(in.ending) != ending) in.unknown_outcome = ending;
  if (in.kind == event_kind::submit || in.kind == event_kind::offer ||
      in.kind == event_kind::acquire) {
    in.job.value = from.text("job_id");
  }
}

stored_row read_row(fields& from) {
  stored_row r;
  r.row.value = from.number("row");
  r.prev_row.value = from.number("prev_row");
  r.key = {protocol::tenant_id(from.text("tenant")), protocol::lease_id(from.text("lease_id"))};
  r.policy = from.word("policy", protocol::policy_id_from_text);
  r.at.ms = from.number("at");
  r.ingress_at.ms = from.number("ingress_at");
  r.fired_at.ms = from.number("fired_at");
  r.input.kind = from.word("event", protocol::event_kind_from_word);
  r.has_input = has_input(r.input.kind, from.text("origin"));
  r.derived = from.truth("derived");
  r.state_before = from.word("state_before", protocol::lease_state_from_word);
  r.answer.decision = from.word("decision", protocol::decision_from_word);
  r.answer.reason = from.word("reason", reason_from);
  r.answer.rule = from.word("rule", rule_from_word);
  r.answer.flags = {from.truth("stale_generation"), from.truth("late_progress"),
                    from.truth("lease_expired"), from.truth("ownership_conflict")};
  r.rule_version = from.number("rule_version");
  r.floor.value = from.number("floor");
  if (r.has_input) read_input(from, r);
  return r;
}

void read_base(fields& from, evidence_line& out) {
  const json::value* hex = out.attachment.if_contains("image");
  std::string bytes;
  if (hex != nullptr && hex->is_string() && out.chosen) {
    try {
      boost::algorithm::unhex(std::string_view(hex->get_string()), std::back_inserter(bytes));
    } catch (const boost::algorithm::hex_decode_error&) {
      bytes.clear();
    }
  }
  auto image = protocol::decode_image(bytes);
  if (!image || !out.chosen) {
    return from.complain("attachment", "has no record that can be read");
  }
  out.row.attachment = protocol::encode_base({*out.chosen, std::move(*image)});
}

void read_attachment(const json::object& line, fields& from, evidence_line& out) {
  const json::value* attached = line.if_contains("attachment");
  if (attached == nullptr || attached->is_null()) return;
  if (!attached->is_object()) return from.complain("attachment", "is not an object");
  out.attachment = attached->get_object();
  const json::value* chosen = out.attachment.if_contains("policy");
  if (chosen != nullptr && chosen->is_object()) out.chosen = policy_from_json(chosen->get_object());
  if (chosen != nullptr && !out.chosen)
    from.complain("attachment", "has a policy that cannot be read");
  if (out.row.input.kind == event_kind::policy && out.chosen) {
    out.row.attachment = protocol::canonical_text(*out.chosen);
  }
  if (out.row.input.kind == event_kind::base) read_base(from, out);
  if (out.row.input.kind == event_kind::restore) {
    const json::value* grants_from = out.attachment.if_contains("grants_from");
    if (grants_from == nullptr || !grants_from->is_int64()) {
      return from.complain("attachment", "does not say from when on grants are made");
    }
    out.row.attachment = protocol::grants_from_text({grants_from->get_int64()});
  }
}

}  // namespace

std::optional<protocol::policy> policy_from_json(const json::object& text) {
  protocol::policy chosen;
  for (const auto& [name, value] : text) {
    const protocol::policy_key* key = protocol::find_policy_key(name);
    if (key == nullptr) return std::nullopt;
    std::variant<std::int64_t, std::string> wanted;
    if (const auto* number = value.if_int64()) {
      wanted = *number;
    } else if (const auto* said = value.if_string()) {
      wanted = std::string(*said);
    } else {
      return std::nullopt;
    }
    if (!key->set(chosen, wanted)) return std::nullopt;
  }
  return chosen;
}

bool is_dispatch_line(std::string_view text) noexcept {
  return text.starts_with(R"({"dispatch_event":)");
}

std::variant<evidence_line, std::string> read_evidence_line(std::string_view text) {
  boost::system::error_code failed;
  const json::value value = json::parse(text, failed);
  if (failed || !value.is_object()) return std::string("it is not a JSON object");
  const json::object& line = value.get_object();
  fields from(line);
  evidence_line out;
  out.row = read_row(from);
  for (const auto columns : {protocol::replay_columns(), protocol::live_columns()}) {
    for (const std::string_view column : columns) out.cells.emplace_back(column, from.any(column));
  }
  read_attachment(line, from, out);
  if (!from.wrong().empty()) return from.wrong();
  return out;
}

}  // namespace leasehold::storage
