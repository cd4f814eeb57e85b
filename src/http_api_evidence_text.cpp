// Evidence rows as JSON lines and CSV.
#include "src/http_api_evidence.hpp"
#include "src/store/evidence_json.hpp"

namespace leasehold::server {
namespace {

using protocol::cell;

void each_cell(const shown_row& shown, const protocol::cell_sink& out) {
  protocol::write_cells(shown.row, shown.after, shown.deferred_row, out);
}

/// A spreadsheet runs what begins so as a formula.
bool looks_like_a_formula(std::string_view text) {
  return !text.empty() && std::string_view("=+-@\t\r").find(text.front()) != std::string_view::npos;
}

std::string csv_cell(const cell& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  if (const auto* toggle = std::get_if<bool>(&value)) return *toggle ? "true" : "false";
  const std::string& text = std::get<std::string>(value);
  std::string safe = looks_like_a_formula(text) ? "'" + text : text;
  if (safe.find_first_of(",\"\r\n") == std::string::npos) return safe;
  std::string out = "\"";
  for (const char c : safe) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

}  // namespace

void append_json_line(std::string& out, const shown_row& shown) {
  storage::append_evidence_line(out, shown.row, shown.after, shown.deferred_row,
                                shown.chosen ? &*shown.chosen : nullptr);
}

std::string csv_head() {
  std::string out;
  for (const auto columns : {protocol::replay_columns(), protocol::live_columns()}) {
    for (const std::string_view column : columns) {
      if (!out.empty()) out += ',';
      out += column;
    }
  }
  return out + "\r\n";
}

void append_csv_line(std::string& out, const shown_row& shown) {
  bool first = true;
  each_cell(shown, [&](std::string_view, const cell& value) {
    if (!first) out += ',';
    first = false;
    out += csv_cell(value);
  });
  out += "\r\n";
}

}  // namespace leasehold::server
