#include <algorithm>
#include <boost/json.hpp>
#include <utility>

#include "src/store/verify.hpp"

namespace leasehold::storage {

namespace {

namespace json = boost::json;
using protocol::cell;

std::string shown(const cell& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  if (const auto* truth = std::get_if<bool>(&value)) return *truth ? "true" : "false";
  return "'" + std::get<std::string>(value) + "'";
}

std::string text_of(const json::object& from, std::string_view name) {
  const json::value* value = from.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

/// 7, -7 and 7u are one number.
bool same(const json::value& a, const json::value& b) {
  if (a.is_number() && b.is_number()) {
    boost::system::error_code failed;
    const auto left = a.to_number<std::int64_t>(failed);
    const auto right = b.to_number<std::int64_t>(failed);
    return !failed && left == right;
  }
  return a == b;
}

}  // namespace

std::optional<std::string> line_verifier::feed(std::string_view text) {
  ++lines_;
  if (is_dispatch_line(text)) return std::nullopt;
  auto read = read_evidence_line(text);
  if (const auto* wrong = std::get_if<std::string>(&read)) {
    problems_.add({}, "", "line " + std::to_string(lines_) + " cannot be read: " + *wrong);
    return *wrong;
  }
  auto& line = std::get<evidence_line>(read);
  ++report_.rows;
  report_.head.last_row = std::max(report_.head.last_row, line.row.row);
  if (line.chosen) {
    const auto id = protocol::id_of(*line.chosen);
    if (id != line.row.policy) {
      problems_.add(line.row.row, "policy", "the policy is not the one that the column names");
    }
    if (fold_.policy_of(id) == nullptr) ++report_.policies;
    fold_.learn(id, *line.chosen);
  }
  if (auto wrong = fold_.feed(line.row)) problems_.add(*wrong);
  compare_cells(line);
  if (line.row.input.kind == protocol::event_kind::submit &&
      line.row.answer.decision == protocol::decision::accepted) {
    submitted_[line.row.key.lease.value] = {line.row.key, std::move(line.attachment)};
  }
  if (line.row.input.kind == protocol::event_kind::base) {
    const json::value* job = line.attachment.if_contains("job");
    if (job != nullptr && job->is_object()) {
      submitted_.try_emplace(line.row.key.lease.value,
                             decltype(submitted_)::mapped_type{line.row.key, job->get_object()});
    }
  }
  if (line.row.input.kind == protocol::event_kind::forget) {
    submitted_.erase(line.row.key.lease.value);
  }
  return std::nullopt;
}

void line_verifier::compare_cells(const evidence_line& line) {
  const auto* image = fold_.find(line.row.key);
  const protocol::record after = image != nullptr ? image->state : protocol::record{};
  std::size_t at = 0;
  bool differs = false;
  protocol::write_cells(
      line.row, after, fold_.deferred_row(), [&](std::string_view column, const cell& wanted) {
        const cell& stands = line.cells[at++].second;
        // A lease keeps its job_id in the record; `step` belongs to scenarios.
        if (differs || stands == wanted || column == "step") return;
        differs = true;
        problems_.add(
            line.row.row, std::string(column),
            "the line says " + shown(stands) + ", from the inputs follows " + shown(wanted));
      });
}

bool line_verifier::is_of_another_time(const json::object& job,
                                       const protocol::fold::lease_image* image) const {
  const json::value* row = job.if_contains("row");
  if (row == nullptr || !row->is_int64()) return false;
  const protocol::row_number shown_at{row->get_int64()};
  return shown_at > report_.head.last_row || (image != nullptr && shown_at < image->last_row);
}

void line_verifier::compare_job(const json::object& job) {
  const std::string id = text_of(job, "job_id");
  const auto found = submitted_.find(id);
  const auto* image = found == submitted_.end() ? nullptr : fold_.find(found->second.key);
  if (is_of_another_time(job, image)) {
    ++report_.passed_over;
    return;
  }
  if (image == nullptr) {
    problems_.add({}, "job_id", "no line tells how job '" + id + "' was submitted");
    return;
  }
  ++report_.records;
  json::object rebuilt = record_json(image->state);
  rebuilt["row"] = image->last_row.value;
  for (const auto& [name, value] : found->second.attachment) {
    if (!name.starts_with("payload")) rebuilt[name] = value;
  }
  for (const auto& [name, value] : rebuilt) {
    const json::value* stands = job.if_contains(name);
    if (stands != nullptr && same(*stands, value)) continue;
    problems_.add(image->last_row, std::string(name),
                  "job '" + id + "' shows " +
                      (stands != nullptr ? json::serialize(*stands) : std::string("nothing")) +
                      ", its rows fold to " + json::serialize(value));
  }
}

verify_report line_verifier::finish() {
  for (const auto& missing : fold_.missing_rows()) problems_.add(missing);
  report_.leases = static_cast<std::int64_t>(fold_.leases().size());
  return report_;
}

}  // namespace leasehold::storage
