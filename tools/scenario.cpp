// Reads scenario files.
#include "tools/scenario.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "tools/replay_text.hpp"
#include "tools/strict_json.hpp"

namespace leasehold::tools {

using namespace protocol;

namespace {

namespace json = boost::json;

/// As JSON has it, so that no text of a file breaks the one line of a refusal.
std::string quoted(std::string_view text) { return json_text(cell{std::string(text)}); }

/// A key as it is, or quoted when it is no plain word.
std::string shown(std::string_view key) {
  const bool plain = !key.empty() && std::all_of(key.begin(), key.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.' || c == ':';
  });
  return plain ? std::string(key) : quoted(key);
}

std::string_view view(const json::string& text) { return {text.data(), text.size()}; }
std::string_view view(json::string_view text) { return {text.data(), text.size()}; }

/// A value with the place where it stands, which every refusal names. The first refusal of a file
/// is kept; reading then goes on to its end, with values that nobody will see.
struct place {
  const json::value& value;
  std::string where;
  std::string& refusal;

  [[nodiscard]] place at(std::string_view key, const json::value& inner) const {
    return {inner, where.empty() ? shown(key) : where + ": " + shown(key), refusal};
  }
  void refuse(const std::string& sentence) const {
    if (refusal.empty()) refusal = sentence;
  }
};

const json::object& object_at(const place& p) {
  static const json::object none;
  if (p.value.is_object()) return p.value.get_object();
  p.refuse(p.where + " must be an object");
  return none;
}

const json::array& array_at(const place& p) {
  static const json::array none;
  if (p.value.is_array()) return p.value.get_array();
  p.refuse(p.where + " must be an array");
  return none;
}

std::string text_at(const place& p) {
  if (p.value.is_string()) return std::string(view(p.value.get_string()));
  p.refuse(p.where + " must be a string");
  return {};
}

/// Evidence has no integer that JSON cannot hold, so no input has one either.
std::int64_t number_at(const place& p) {
  const auto* number = p.value.if_int64();
  if (number != nullptr && *number <= max_number && *number >= -max_number) return *number;
  p.refuse(p.where + " must be an integer within 2^53 - 1 of 0");
  return 0;
}

bool truth_at(const place& p) {
  if (p.value.is_bool()) return p.value.get_bool();
  p.refuse(p.where + " must be true or false");
  return false;
}

// ---- policy ------------------------------------------------------------------------------------

void read_policy_value(policy& chosen, std::string_view name, const place& p) {
  const auto* key = find_policy_key(name);
  if (key == nullptr) {
    p.refuse("policy has no key " + quoted(name));
  } else if (!key->words.empty()) {
    const auto text = text_at(p);
    if (key->set(chosen, text)) return;
    p.refuse(p.where + " must be one of " + std::string(key->words) + ", not " + quoted(text));
  } else {
    const auto number = number_at(p);
    if (number < 0) p.refuse(p.where + " must be 0 or more, not " + std::to_string(number));
    key->set(chosen, number);
  }
}

policy read_policy(const place& p) {
  policy chosen;
  for (const auto& [key, value] : object_at(p)) {
    read_policy_value(chosen, view(key), p.at(view(key), value));
  }
  return chosen;
}

// ---- expectations ------------------------------------------------------------------------------

cell read_cell(const place& p) {
  if (p.value.is_string()) return text_at(p);
  if (p.value.is_bool()) return truth_at(p);
  return number_at(p);
}

expected_cells read_cells(const place& p) {
  expected_cells cells;
  const auto columns = replay_columns();
  for (const auto& [key, value] : object_at(p)) {
    const auto column = view(key);
    if (std::find(columns.begin(), columns.end(), column) == columns.end()) {
      p.refuse(p.where + " names " + quoted(column) + ", which is no column");
    }
    cells.emplace_back(std::string(column), read_cell(p.at(column, value)));
  }
  return cells;
}

// ---- steps -------------------------------------------------------------------------------------

void read_outcome(event& what, const place& p) {
  const auto text = text_at(p);
  if (const auto known = outcome_from_word(text)) {
    what.ending = *known;
  } else {
    what.unknown_outcome = text;
  }
}

/// The keys of a step that fill the event, and how each does.
struct event_key {
  std::string_view name;
  void (*read)(event&, const place&);
};

constexpr std::array event_keys{
    event_key{"lease", [](event& e, const place& p) { e.lease = lease_id{text_at(p)}; }},
    event_key{"job", [](event& e, const place& p) { e.job = job_id{text_at(p)}; }},
    event_key{"generation", [](event& e, const place& p) { e.gen.value = number_at(p); }},
    event_key{"holder", [](event& e, const place& p) { e.from = holder{text_at(p)}; }},
    event_key{"sequence", [](event& e, const place& p) { e.seq.value = number_at(p); }},
    event_key{"value", [](event& e, const place& p) { e.value = text_at(p); }},
    event_key{"outcome", &read_outcome},
    event_key{"detail", [](event& e, const place& p) { e.detail = text_at(p); }},
    event_key{"retryable", [](event& e, const place& p) { e.retryable = truth_at(p); }},
    event_key{"force", [](event& e, const place& p) { e.force = truth_at(p); }},
    event_key{"request_id", [](event& e, const place& p) { e.request = request_id{text_at(p)}; }},
    event_key{"sent_at", [](event& e, const place& p) { e.sent_at.ms = number_at(p); }},
};

bool is_op(event_kind kind) noexcept { return kind <= event_kind::recover; }

/// Nothing for a tick.
std::optional<event_kind> read_op(const place& p) {
  const auto text = text_at(p);
  if (text == "tick") return std::nullopt;
  const auto kind = event_kind_from_word(text);
  if (!kind || !is_op(*kind)) {
    p.refuse(p.where + " is " + quoted(text) + ", which is no operation");
  }
  return kind;
}

instant read_time(const place& p, instant before) {
  const auto at = number_at(p);
  if (at < 1 || at > max_number) p.refuse(p.where + " must be from 1 to 2^53 - 1");
  if (at < before.ms) {
    p.refuse(p.where + " is " + std::to_string(at) + ", before the step that precedes it (" +
             std::to_string(before.ms) + ")");
  }
  return instant{at};
}

const json::value& required(const json::object& object, std::string_view key, const place& p) {
  static const json::value none;
  if (const auto* found = object.if_contains({key.data(), key.size()})) return *found;
  p.refuse(p.where + " has no " + quoted(key));
  return none;
}

void complete(event& what, const json::object& fields, const scenario_step& step, const place& p) {
  if (what.kind != event_kind::recover) required(fields, "lease", p);
  if (!fields.contains("job")) what.job = job_id{what.lease.value};
  if (is_frame(what.kind) && !fields.contains("sent_at")) what.sent_at = step.at;
}

void read_step_key(scenario_step& step, event& what, std::string_view key, const place& p) {
  if (key == "at" || key == "op") return;
  if (key == "expect") {
    step.expect = read_cells(p);
    return;
  }
  const auto* known = std::find_if(event_keys.begin(), event_keys.end(),
                                   [key](const auto& candidate) { return candidate.name == key; });
  if (known == event_keys.end()) {
    p.refuse(p.where + ": a step has no such key");
  } else {
    known->read(what, p);
  }
}

scenario_step read_step(const place& p, instant before) {
  const auto& fields = object_at(p);
  scenario_step step;
  step.at = read_time(p.at("at", required(fields, "at", p)), before);
  const auto kind = read_op(p.at("op", required(fields, "op", p)));
  event what;
  for (const auto& [name, value] : fields) {
    read_step_key(step, what, view(name), p.at(view(name), value));
  }
  if (kind) {
    what.kind = *kind;
    complete(what, fields, step, p);
    step.what = std::move(what);
  }
  return step;
}

std::vector<scenario_step> read_steps(const place& p) {
  std::vector<scenario_step> steps;
  instant before;
  for (const auto& value : array_at(p)) {
    steps.push_back(
        read_step({value, "step " + std::to_string(steps.size() + 1), p.refusal}, before));
    before = steps.back().at;
  }
  return steps;
}

// ---- the file ----------------------------------------------------------------------------------

void read_file_key(scenario& file, std::string_view key, const place& p) {
  if (key == "scenario") {
    file.name = text_at(p);
  } else if (key == "clause") {
    text_at(p);
  } else if (key == "policy") {
    file.policy = read_policy(p);
  } else if (key == "steps") {
    file.steps = read_steps(p);
  } else if (key == "final") {
    for (const auto& [lease, cells] : object_at(p)) {
      file.final.emplace_back(lease_id{view(lease)}, read_cells(p.at(view(lease), cells)));
    }
  } else {
    p.refuse("a scenario has no key " + quoted(key));
  }
}

scenario read_file(const json::value& value, std::string& refusal) {
  scenario file;
  const auto& keys = object_at({value, "a scenario", refusal});
  const place all{value, {}, refusal};
  for (const auto& [key, inner] : keys) {
    read_file_key(file, view(key), all.at(view(key), inner));
  }
  required(keys, "steps", {value, "the scenario", refusal});
  return file;
}

}  // namespace

std::string_view scenario_step::op() const noexcept { return what ? word(what->kind) : "tick"; }

std::variant<scenario, malformed_scenario> read_scenario(std::string_view text) {
  auto parsed = parse_strictly(text);
  if (const auto* bad = std::get_if<malformed_text>(&parsed))
    return malformed_scenario{bad->sentence};
  std::string refusal;
  auto file = read_file(std::get<json::value>(parsed), refusal);
  if (!refusal.empty()) return malformed_scenario{refusal};
  return file;
}

}  // namespace leasehold::tools
