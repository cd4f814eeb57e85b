#include "tools/dispatch_text.hpp"

#include <fmt/format.h>

#include "tools/json_fields.hpp"
#include "tools/terminal.hpp"

namespace leasehold::tools {
namespace {

namespace json = boost::json;

std::string result_of(const json::object& from, std::string_view name) {
  const auto word = text_in(from, name);
  return word.empty() ? "-" : word;
}

void add_line(std::string& out, std::string_view name, const std::string& value) {
  if (!value.empty()) out += fmt::format("  {:<14} {}\n", name, printable(value));
}

void add_time(std::string& out, std::string_view name, const json::object& from,
              std::string_view key) {
  if (const auto at = number_in(from, key); at > 0) add_line(out, name, time_text(at));
}

std::string events_of(const json::object& answer) {
  table shown({"AT", "EVENT", "RESULT", "GEN", "CLAIM"});
  for (const auto& each : array_in(answer, "events")) {
    if (!each.is_object()) continue;
    const auto& event = each.get_object();
    shown.add({time_text(number_in(event, "at")), text_in(event, "dispatch_event"),
               result_of(event, "result"), cell_in(event, "generation"),
               cell_in(event, "dispatch_count")});
  }
  return shown.empty() ? "" : "\n" + shown.text();
}

}  // namespace

std::vector<std::string> dispatch_cells(const json::object& dispatch) {
  return {text_in(dispatch, "job_id"),
          text_in(dispatch, "status"),
          text_in(dispatch, "stage"),
          result_of(dispatch, "last_result"),
          cell_in(dispatch, "generation"),
          cell_in(dispatch, "dispatch_count"),
          time_text(number_in(dispatch, "next_attempt_at")),
          time_text(number_in(dispatch, "created_at"))};
}

std::string describe_dispatch(const json::object& answer) {
  const auto& one = object_in(answer, "dispatch");
  const auto status = printable(text_in(one, "status"));
  auto out = fmt::format("{}  {}\n", toned(printable(text_in(one, "job_id")), tone::strong),
                         toned(status, tone_of(status)));
  add_line(out, "why", text_in(one, "why"));
  add_line(out, "check", text_in(one, "check"));
  add_line(out, "stage", text_in(one, "stage"));
  add_line(out, "last result", text_in(one, "last_result"));
  add_line(out, "generation", cell_in(one, "generation"));
  add_line(out, "claims", cell_in(one, "dispatch_count"));
  add_line(out, "host", text_in(one, "host"));
  add_line(out, "claimed by", text_in(one, "lease_owner"));
  add_time(out, "claim ends", one, "lease_expires_at");
  add_time(out, "next attempt", one, "next_attempt_at");
  add_time(out, "cancelled", one, "cancel_requested_at");
  add_time(out, "time to stop", one, "cancel_deadline");
  add_time(out, "changed", one, "updated_at");
  return out + events_of(answer);
}

}  // namespace leasehold::tools
