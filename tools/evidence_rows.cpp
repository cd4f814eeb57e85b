#include "tools/evidence_rows.hpp"

#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <string_view>

#include "tools/output.hpp"
#include "tools/terminal.hpp"

namespace leasehold::tools {
namespace {

namespace json = boost::json;

std::string flags_of(const json::object& row) {
  std::string out;
  for (const std::string_view name :
       {"stale_generation", "late_progress", "lease_expired", "ownership_conflict"}) {
    if (flag_in(row, name)) out += (out.empty() ? "" : " ") + std::string(name);
  }
  return out;
}

/// What the frame named: its generation and, where it has one, its sequence.
std::string named_by(const json::object& row) {
  const auto generation = number_in(row, "frame_generation");
  const auto sequence = number_in(row, "frame_sequence");
  if (generation == 0) return "";
  return sequence == 0 ? fmt::format("g{}", generation)
                       : fmt::format("g{} #{}", generation, sequence);
}

/// Cut in the middle: what tells instances apart may stand at either end, as in HOST:PID.
std::string short_holder(const json::object& row) {
  constexpr std::size_t longest = 17;
  constexpr std::size_t begin = 6;
  constexpr std::size_t end = 9;
  const auto holder = text_in(row, "holder_identity");
  const auto slash = holder.find('/');
  const bool is_short = slash == std::string::npos || holder.size() - slash - 1 <= longest;
  return is_short ? holder
                  : holder.substr(0, slash + 1 + begin) + ".." + holder.substr(holder.size() - end);
}

std::string matrix_of(const std::vector<json::object>& rows) {
  table shown({"ROW", "AT", "EVENT", "NAMES", "DECISION", "REASON", "STATE", "GEN", "HOLDER",
               "RENEW", "PROGRESS", "FLAGS"});
  shown.colour_column(4);
  for (const auto& row : rows) {
    if (const auto event = text_in(row, "dispatch_event"); !event.empty()) {
      shown.add(
          {"-", time_text(number_in(row, "at")), event,
           fmt::format("g{} #{}", number_in(row, "generation"), number_in(row, "dispatch_count")),
           "", text_in(row, "result")});
      continue;
    }
    const auto progress = number_in(row, "progress_sequence");
    shown.add({cell_in(row, "row"), time_text(number_in(row, "at")), cell_in(row, "event"),
               named_by(row), cell_in(row, "decision"), cell_in(row, "reason"),
               cell_in(row, "state"), cell_in(row, "generation"), short_holder(row),
               cell_in(row, "renew_sequence"),
               progress == 0 ? "" : fmt::format("#{} {}", progress, text_in(row, "progress_value")),
               flags_of(row)});
  }
  return shown.text();
}

}  // namespace

exit_code read_rows(api& coordinator, const std::string& target, std::vector<json::object>& rows) {
  bool broken = false;
  const auto result = coordinator.lines(target, "application/x-ndjson", [&](std::string_view line) {
    boost::system::error_code error;
    auto row = json::parse(line, error);
    broken = error || !row.is_object();
    if (!broken) rows.push_back(std::move(row.get_object()));
    return !broken;
  });
  if (broken) return complain(exit_code::broken, "a line of the evidence is no JSON object");
  return result;
}

void print_rows(const std::vector<json::object>& rows, bool as_json) {
  if (!as_json) return write_out(matrix_of(rows));
  for (const auto& row : rows) print_json(row);
}

exit_code print_csv(api& coordinator, const std::string& target) {
  return coordinator.lines(target, "text/csv", [](std::string_view line) {
    write_line(line);
    return !output_is_lost();
  });
}

}  // namespace leasehold::tools
