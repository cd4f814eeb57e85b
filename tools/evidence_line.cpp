#include "tools/evidence_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "tools/json_fields.hpp"

namespace leasehold::tools {
namespace {

namespace json = boost::json;
using protocol::event_kind;

std::optional<protocol::rule_id> rule_from_word(std::string_view text) {
  const auto rules = protocol::all_rules();
  const auto found = std::find_if(rules.begin(), rules.end(),
                                  [&](protocol::rule_id id) { return protocol::word(id) == text; });
  return found == rules.end() ? std::nullopt : std::optional(*found);
}

bool is_own_kind(event_kind kind) {
  return kind == event_kind::expire || kind == event_kind::reconcile_close ||
         kind == event_kind::activate || kind == event_kind::stop || kind == event_kind::recover;
}

void read_input(const json::object& line, bool force, protocol::event& input) {
  input.lease = protocol::lease_id(text_in(line, "lease_id"));
  const bool names_job = input.kind == event_kind::submit || input.kind == event_kind::offer;
  if (names_job) input.job = protocol::job_id(text_in(line, "job_id"));
  input.gen.value = number_in(line, "frame_generation");
  input.from = protocol::holder(text_in(line, "frame_holder"));
  input.seq.value = number_in(line, "frame_sequence");
  input.sent_at.ms = number_in(line, "sent_at");
  input.value = text_in(line, "frame_value");
  const auto outcome = text_in(line, "frame_outcome");
  const auto known = protocol::outcome_from_word(outcome);
  input.ending = known.value_or(protocol::outcome::none);
  if (!known) input.unknown_outcome = outcome;
  input.detail = text_in(line, "frame_detail");
  input.retryable = flag_in(line, "frame_retryable");
  input.force = force;
  input.request = protocol::request_id(text_in(line, "request_id"));
  input.frame_id = number_in(line, "frame_id");
  input.trace_id = text_in(line, "trace_id");
}

/// The words of a line; nothing when one is not known.
std::optional<std::string> read_words(const json::object& line, protocol::stored_row& out) {
  const auto kind = protocol::event_kind_from_word(text_in(line, "event"));
  const auto before = protocol::lease_state_from_word(text_in(line, "state_before"));
  const auto decision = protocol::decision_from_word(text_in(line, "decision"));
  const auto reason = protocol::reason_from_word(text_in(line, "reason"));
  const auto rule = rule_from_word(text_in(line, "rule"));
  const auto policy = read_policy_id(text_in(line, "policy"));
  if (!kind) return "event";
  if (!before) return "state_before";
  if (!decision) return "decision";
  if (!reason) return "reason";
  if (!rule) return "rule";
  if (!policy) return "policy";
  out.input.kind = *kind;
  out.state_before = *before;
  out.answer.decision = *decision;
  out.answer.reason = *reason;
  out.answer.rule = *rule;
  out.policy = *policy;
  return {};
}

}  // namespace

std::optional<protocol::policy_id> read_policy_id(const std::string& digits) {
  protocol::policy_id out;
  const auto* begin = digits.data();
  const auto [end, error] = std::from_chars(begin, begin + digits.size(), out.value, 16);
  if (error != std::errc() || end != begin + digits.size() || digits.size() != 16) return {};
  return out;
}

std::optional<protocol::policy> read_attached_policy(const json::object& line) {
  protocol::policy out;
  for (const auto& [name, value] : object_in(object_in(line, "attachment"), "policy")) {
    const auto* key = protocol::find_policy_key(name);
    if (key == nullptr) return {};
    const auto* number = value.if_int64();
    const auto* word = value.if_string();
    const bool fits = number != nullptr ? key->set(out, *number)
                      : word != nullptr ? key->set(out, std::string(*word))
                                        : false;
    if (!fits) return {};
  }
  return out;
}

std::variant<protocol::stored_row, unreadable_line> read_line(const json::object& line,
                                                              bool force) {
  protocol::stored_row out;
  out.row.value = number_in(line, "row");
  if (const auto column = read_words(line, out)) {
    return unreadable_line{
        fmt::format("row {}: the column {} is missing or says what this program "
                    "does not know",
                    out.row.value, *column)};
  }
  out.prev_row.value = number_in(line, "prev_row");
  out.key = {protocol::tenant_id(text_in(line, "tenant")),
             protocol::lease_id(text_in(line, "lease_id"))};
  out.at.ms = number_in(line, "at");
  out.ingress_at.ms = number_in(line, "ingress_at");
  out.fired_at.ms = number_in(line, "fired_at");
  out.rule_version = number_in(line, "rule_version");
  out.answer.flags = {flag_in(line, "stale_generation"), flag_in(line, "late_progress"),
                      flag_in(line, "lease_expired"), flag_in(line, "ownership_conflict")};
  const auto kind = out.input.kind;
  const bool by_record = out.answer.rule == protocol::rule_id::resolved_by_record;
  out.has_input = !is_own_kind(kind) && !by_record && kind < event_kind::clock_anchored;
  out.derived = number_in(line, "deferred_row") != 0 || by_record || kind == event_kind::activate ||
                kind == event_kind::stop;
  if (out.has_input) read_input(line, force, out.input);
  return out;
}

}  // namespace leasehold::tools
