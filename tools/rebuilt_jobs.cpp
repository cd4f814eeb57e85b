#include "tools/rebuilt_jobs.hpp"

#include <fmt/format.h>

#include "src/http_api_job.hpp"
#include "tools/evidence_line.hpp"
#include "tools/json_fields.hpp"

namespace leasehold::tools {
namespace {

namespace json = boost::json;

actors::job_spec body_of(const json::object& line) {
  const auto& attached = object_in(line, "attachment");
  actors::job_spec out;
  out.queue = text_in(attached, "queue");
  for (const auto& [name, value] : object_in(attached, "labels")) {
    if (value.is_string()) out.labels[std::string(name)] = std::string(value.get_string());
  }
  out.priority = number_in(attached, "priority");
  out.not_before.ms = number_in(attached, "not_before");
  out.not_after.ms = number_in(attached, "not_after");
  out.request = protocol::request_id(text_in(attached, "request_id"));
  out.trace_id = text_in(attached, "trace_id");
  out.redrive_of = protocol::job_id(text_in(attached, "redrive_of"));
  out.submitted_by = text_in(attached, "submitted_by");
  out.submitted_at.ms = number_in(attached, "submitted_at");
  return out;
}

}  // namespace

std::optional<std::string> rebuilt_jobs::take(const json::object& line) {
  const auto event = text_in(line, "event");
  if (event == "policy") {
    const auto id = read_policy_id(text_in(line, "policy"));
    const auto chosen = read_attached_policy(line);
    if (!id || !chosen) {
      return fmt::format("row {}: the policy cannot be read", number_in(line, "row"));
    }
    fold_.learn(*id, *chosen);
    return {};
  }
  if (event == "base") {
    return fmt::format(
        "row {} is a base row: the rows before it were cut, and lines alone cannot "
        "rebuild its record",
        number_in(line, "row"));
  }
  if (event == "clock_anchored" || event == "counted") return {};
  const protocol::lease_key key{protocol::tenant_id(text_in(line, "tenant")),
                                protocol::lease_id(text_in(line, "lease_id"))};
  const auto read = read_line(line, event == "revoke" && revokes_[key].tell(line));
  if (const auto* fault = std::get_if<unreadable_line>(&read)) return fault->sentence;
  const auto& row = std::get<protocol::stored_row>(read);
  if (auto fault = fold_.feed(row)) wrong_.push_back(std::move(*fault));
  remember_body(row, line);
  return {};
}

void rebuilt_jobs::remember_body(const protocol::stored_row& row, const json::object& line) {
  if (row.input.kind == protocol::event_kind::forget) bodies_.erase(row.key);
  const bool made = row.input.kind == protocol::event_kind::submit &&
                    row.answer.decision == protocol::decision::accepted;
  if (made) bodies_[row.key] = body_of(line);
}

std::vector<protocol::fold::mismatch> rebuilt_jobs::wrong_rows() const {
  auto out = wrong_;
  for (auto& missing : fold_.missing_rows()) out.push_back(std::move(missing));
  return out;
}

std::map<std::string, json::object> rebuilt_jobs::jobs() const {
  std::map<std::string, json::object> out;
  for (const auto& [key, image] : fold_.leases()) {
    if (image.state.kind != protocol::lease_kind::job) continue;
    auto body = bodies_.find(key);
    auto spec = std::make_shared<actors::job_spec>(body == bodies_.end() ? actors::job_spec()
                                                                         : body->second);
    if (const auto* chosen = fold_.policy_of(image.policy)) spec->policy = *chosen;
    const actors::job_view view{key.tenant, std::make_shared<const protocol::record>(image.state),
                                spec, image.policy, image.last_row};
    out[image.state.job.value] = server::to_json(view, false);
  }
  return out;
}

}  // namespace leasehold::tools
