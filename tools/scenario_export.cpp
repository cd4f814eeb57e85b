#include "tools/scenario_export.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <cstdint>
#include <optional>

#include "tools/json_fields.hpp"

namespace leasehold::tools {
namespace {

namespace json = boost::json;
using object = json::object;

template <std::size_t Size>
bool is_one_of(std::string_view word, const std::array<std::string_view, Size>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// What a row is in a scenario.
enum class part : std::uint8_t {
  step,      ///< an input: becomes a step
  deadline,  ///< time's doing: becomes a tick
  derived,   ///< follows from the step before: replay makes it again
  unexportable
};

part part_of(const object& row) {
  static constexpr std::array<std::string_view, 7> inputs_of_workers{
      "ack", "decline", "renew", "progress", "cancel_ack", "result", "release"};
  static constexpr std::array<std::string_view, 10> operations{
      "submit", "offer",   "withdraw",  "acquire", "cancel",
      "revoke", "resolve", "reconcile", "prove",   "recover"};
  static constexpr std::array<std::string_view, 2> deadlines{"expire", "reconcile_close"};
  static constexpr std::array<std::string_view, 6> followers{"activate",       "stop",   "counted",
                                                             "clock_anchored", "policy", "base"};
  const auto event = text_in(row, "event");
  if (is_one_of(event, followers)) return part::derived;
  if (is_one_of(event, deadlines)) return part::deadline;
  if (number_in(row, "deferred_row") != 0) return part::derived;
  if (event == "resolve" && text_in(row, "origin") == "coordinator") return part::derived;
  const bool known = is_one_of(event, inputs_of_workers) || is_one_of(event, operations);
  return known ? part::step : part::unexportable;
}

/// Writes the steps of one lease, row after row.
class step_writer {
 public:
  std::optional<not_exportable> take(const object& row) {
    switch (part_of(row)) {
      case part::derived:
        return {};
      case part::deadline:
        tick_at(number_in(row, "at"));
        return {};
      case part::step:
        return add_step(row);
      case part::unexportable:
        break;
    }
    return not_exportable{fmt::format("row {} is a \"{}\", which a scenario cannot say",
                                      number_in(row, "row"), text_in(row, "event"))};
  }
  [[nodiscard]] const std::vector<object>& steps() const noexcept { return steps_; }

 private:
  void tick_at(std::int64_t at) {
    at_ = std::max(at_, at);
    const bool told =
        !steps_.empty() && steps_.back()["op"] == "tick" && steps_.back()["at"] == at_;
    if (!told) steps_.push_back({{"at", at_}, {"op", "tick"}});
  }

  std::optional<not_exportable> add_step(const object& row) {
    const auto event = text_in(row, "event");
    at_ = std::max(at_, number_in(row, "at"));
    object step{{"at", at_}, {"op", event}};
    if (event != "recover") step["lease"] = text_in(row, "lease_id");
    if (event == "submit" || event == "offer") step["job"] = text_in(row, "job_id");
    if (flag_in(row, "force")) step["force"] = true;
    copy_input(row, step);
    step["expect"] = object{{"decision", text_in(row, "decision")},
                            {"reason", text_in(row, "reason")},
                            {"state", text_in(row, "state")},
                            {"generation", number_in(row, "generation")}};
    steps_.push_back(std::move(step));
    return check_generation(row);
  }

  static void copy_input(const object& row, object& step) {
    struct pair {
      std::string_view column;
      std::string_view key;
    };
    static constexpr std::array columns{
        pair{"frame_generation", "generation"}, pair{"frame_holder", "holder"},
        pair{"frame_sequence", "sequence"},     pair{"sent_at", "sent_at"},
        pair{"frame_value", "value"},           pair{"frame_outcome", "outcome"},
        pair{"frame_detail", "detail"},         pair{"frame_retryable", "retryable"},
        pair{"request_id", "request_id"}};
    const bool is_frame = text_in(row, "origin") == "worker";
    for (const auto& [column, key] : columns) {
      const auto* value = row.if_contains(column);
      if (value == nullptr) continue;
      const bool empty =
          *value == json::value(0) || *value == json::value("") || *value == json::value(false);
      // A frame's sent_at would default to `at`; one that said 0 has to say it again.
      if (!empty || (is_frame && key == "sent_at")) step[key] = *value;
    }
  }

  /// A grant that skips generations followed a restored backup or a forgotten record: the steps
  /// that raised them are in no row of this lease.
  std::optional<not_exportable> check_generation(const object& row) {
    const std::int64_t generation = number_in(row, "generation");
    const bool skipped = generation > generation_ + 1;
    generation_ = generation;
    if (!skipped) return {};
    return not_exportable{
        fmt::format("row {} grants generation {} although the rows before it do not lead there: "
                    "the history was "
                    "cut, or the store was restored from a backup",
                    number_in(row, "row"), generation)};
  }

  std::vector<object> steps_;
  std::int64_t at_ = 1;
  std::int64_t generation_ = 0;
};

object last_standing(const object& row) {
  object out;
  for (const std::string_view column :
       {"state", "generation", "holder_identity", "terminal_result", "attempt", "losses",
        "unproven", "renew_sequence", "progress_sequence", "progress_value", "expires_at"}) {
    if (const auto* value = row.if_contains(column)) out[column] = *value;
  }
  return out;
}

std::string file_of(std::string_view title, const object& policy, const std::vector<object>& steps,
                    const object& last_row) {
  const auto quoted = [](std::string_view words) { return json::serialize(json::string(words)); };
  std::string out = fmt::format("{{\"scenario\": {},\n \"policy\": {},\n \"steps\": [\n",
                                quoted(title), json::serialize(policy));
  for (std::size_t i = 0; i < steps.size(); ++i) {
    out += "  " + json::serialize(steps[i]) + (i + 1 < steps.size() ? ",\n" : "\n");
  }
  const object final{{text_in(last_row, "lease_id"), last_standing(last_row)}};
  return out + " ],\n \"final\": " + json::serialize(final) + "}\n";
}

}  // namespace

std::variant<std::string, not_exportable> scenario_of(std::vector<object> rows,
                                                      const object& policy,
                                                      std::string_view title) {
  std::erase_if(rows, [](const object& row) { return row.contains("dispatch_event"); });
  std::sort(rows.begin(), rows.end(), [](const object& a, const object& b) {
    return number_in(a, "row") < number_in(b, "row");
  });
  if (rows.empty()) return not_exportable{"there are no rows"};
  if (text_in(rows.front(), "event") == "base") {
    return not_exportable{fmt::format(
        "the history begins with the base row {}: what came before it was cut by retention",
        number_in(rows.front(), "row"))};
  }
  step_writer writer;
  for (const auto& row : rows) {
    if (auto fault = writer.take(row)) return *fault;
  }
  return file_of(title, policy, writer.steps(), rows.back());
}

}  // namespace leasehold::tools
