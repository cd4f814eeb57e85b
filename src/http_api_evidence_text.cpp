// Evidence rows as JSON lines and CSV.
#include <boost/json.hpp>

#include "leasehold/actors/job.hpp"
#include "src/http_api_evidence.hpp"
#include "src/http_api_job.hpp"

namespace leasehold::server {
namespace {

namespace json = boost::json;
using protocol::cell;
using protocol::event_kind;

json::value cell_json(const cell& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return *number;
  if (const auto* toggle = std::get_if<bool>(&value)) return *toggle;
  return json::value(std::get<std::string>(value));
}

/// The job's body as its submitter gave it; of the payload its length alone.
json::value job_body(const std::string& bytes) {
  const auto spec = actors::decode_job(bytes);
  if (!spec) return nullptr;
  json::object labels;
  for (const auto& [name, value] : spec->labels) labels[name] = value;
  return json::object{{"queue", spec->queue},
                      {"labels", std::move(labels)},
                      {"priority", spec->priority},
                      {"not_before", spec->not_before.ms},
                      {"not_after", spec->not_after.ms},
                      {"request_id", spec->request.value},
                      {"trace_id", spec->trace_id},
                      {"redrive_of", spec->redrive_of.value},
                      {"submitted_by", spec->submitted_by},
                      {"submitted_at", spec->submitted_at.ms},
                      {"payload_bytes", spec->payload.size()}};
}

json::value attachment_of(const protocol::stored_row& r) {
  if (r.attachment.empty()) return nullptr;
  if (r.input.kind == event_kind::submit) return job_body(r.attachment);
  if (r.input.kind == event_kind::policy) {
    const auto chosen = protocol::policy_from_text(r.attachment);
    return chosen ? json::value(to_json(*chosen)) : json::value();
  }
  if (r.input.kind == event_kind::clock_anchored) return json::value(r.attachment);
  return nullptr;
}

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
  const std::string safe = looks_like_a_formula(text) ? "'" + text : text;
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
  json::object line;
  each_cell(shown,
            [&](std::string_view column, const cell& value) { line[column] = cell_json(value); });
  json::value attached = attachment_of(shown.row);
  if (!attached.is_null()) line["attachment"] = std::move(attached);
  out += json::serialize(line);
  out += '\n';
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
