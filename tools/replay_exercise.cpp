// The learner's exercise: steps without their labels, and a learner's answers.
#include "tools/replay.hpp"
#include "tools/replay_text.hpp"
#include "tools/strict_json.hpp"

namespace leasehold::tools {

using namespace protocol;

namespace {

cell to_cell(const std::variant<std::int64_t, std::string>& value) {
  return std::visit([](const auto& held) { return cell{held}; }, value);
}

std::string policy_text(const policy& chosen) {
  std::string text;
  line_writer line(text);
  line.begin();
  for (const auto& key : policy_keys()) line.put(key.name, to_cell(key.get(chosen)));
  line.end(false);
  return text;
}

std::string outcome_text(const event& what) {
  return what.ending == outcome::none ? what.unknown_outcome : std::string(word(what.ending));
}

void put_inputs(line_writer& line, const event& what) {
  line.put("origin", std::string(word(origin_of(what.kind))));
  line.put("lease_id", what.lease.value);
  line.put("frame_job", what.job.value);
  line.put("frame_generation", what.gen.value);
  line.put("frame_holder", what.from.value);
  line.put("frame_sequence", what.seq.value);
  line.put("sent_at", what.sent_at.ms);
  line.put("frame_value", what.value);
  line.put("frame_outcome", outcome_text(what));
  line.put("frame_detail", what.detail);
  line.put("frame_retryable", what.retryable);
  line.put("frame_force", what.force);
  line.put("request_id", what.request.value);
}

// ---- answers -----------------------------------------------------------------------------------

namespace json = boost::json;

std::optional<std::string> text_of(const json::object& line, std::string_view key) {
  const auto* found = line.if_contains({key.data(), key.size()});
  if (found == nullptr || !found->is_string()) return std::nullopt;
  return std::string(found->get_string());
}

/// Adds one line; yields what is wrong with it.
std::optional<std::string> read_answer(std::string_view text, learners_answers& answers) {
  auto parsed = parse_strictly(text);
  if (const auto* bad = std::get_if<malformed_text>(&parsed)) return bad->sentence;
  const auto* line = std::get<json::value>(parsed).if_object();
  if (line == nullptr) return "an answer must be an object";
  const auto* step = line->if_contains("step");
  if (step == nullptr || !step->is_int64()) return "an answer needs an integer \"step\"";
  const auto decision = text_of(*line, "decision");
  const auto reason = text_of(*line, "reason");
  if (!decision || !reason) return "an answer needs the strings \"decision\" and \"reason\"";
  auto file = text_of(*line, "file");
  if (!file) file = text_of(*line, "scenario");
  const bool is_new =
      answers
          .try_emplace({file.value_or(""), step->get_int64()}, learners_answer{*decision, *reason})
          .second;
  if (!is_new) return "step " + std::to_string(step->get_int64()) + " was answered before";
  return std::nullopt;
}

}  // namespace

void print_inputs(std::string_view path, const scenario& file, std::string& out) {
  const auto policy_json = policy_text(file.policy);
  line_writer line(out);
  std::int64_t number = 0;
  for (const auto& step : file.steps) {
    line.begin();
    line.put("file", std::string(path));
    line.put("scenario", file.name);
    line.put("step", ++number);
    line.put("at", step.at.ms);
    line.put("event", std::string(step.op()));
    if (step.what) put_inputs(line, *step.what);
    line.put_json("policy", policy_json);
    line.end();
  }
}

std::variant<learners_answers, malformed_answers> read_answers(std::string_view text) {
  learners_answers answers;
  for (std::int64_t number = 1; !text.empty(); ++number) {
    const auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    if (const auto fault = read_answer(line, answers)) {
      return malformed_answers{"line " + std::to_string(number) + ": " + *fault};
    }
  }
  return answers;
}

}  // namespace leasehold::tools
