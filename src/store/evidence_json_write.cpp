#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <boost/algorithm/hex.hpp>
#include <boost/json.hpp>
#include <charconv>
#include <cstring>

#include "leasehold/actors/job.hpp"
#include "leasehold/protocol/record_image.hpp"
#include "src/store/batch_log.hpp"
#include "src/store/evidence_json.hpp"

namespace leasehold::storage {

namespace {

namespace json = boost::json;
using protocol::cell;
using protocol::event_kind;

/// Those that tell of the row: what came in and what was decided about it.
constexpr std::array<std::string_view, 20> row_columns{"step",
                                                       "at",
                                                       "origin",
                                                       "event",
                                                       "frame_generation",
                                                       "frame_holder",
                                                       "frame_sequence",
                                                       "sent_at",
                                                       "state_before",
                                                       "stale_generation",
                                                       "late_progress",
                                                       "lease_expired",
                                                       "ownership_conflict",
                                                       "decision",
                                                       "reason",
                                                       "frame_value",
                                                       "frame_outcome",
                                                       "frame_detail",
                                                       "frame_retryable",
                                                       "request_id"};

json::value json_of(const cell& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return *number;
  if (const auto* truth = std::get_if<bool>(&value)) return *truth;
  return json::string(std::get<std::string>(value));
}

std::string sha256_hex(std::string_view bytes) {
  actors::chain_hash hash{};
  EVP_Digest(bytes.data(), bytes.size(), reinterpret_cast<unsigned char*>(hash.data()), nullptr,
             EVP_sha256(), nullptr);
  return to_hex(hash);
}

json::object job_json(const actors::job_spec& spec) {
  json::object labels;
  for (const auto& [name, value] : spec.labels) labels[name] = value;
  return {{"queue", spec.queue},
          {"labels", std::move(labels)},
          {"priority", spec.priority},
          {"not_before", spec.not_before.ms},
          {"not_after", spec.not_after.ms},
          {"submitted_by", spec.submitted_by},
          {"submitted_at", spec.submitted_at.ms},
          {"redrive_of", spec.redrive_of.value},
          {"request_id", spec.request.value},
          {"trace_id", spec.trace_id},
          {"payload_bytes", spec.payload.size()},
          {"payload_sha256", sha256_hex(spec.payload)}};
}

json::object lock_json(const actors::lock_spec& spec) {
  json::object metadata;
  for (const auto& [name, value] : spec.metadata) metadata[name] = value;
  json::value tie;
  if (!spec.tie.job.empty()) {
    tie = {{"job", spec.tie.job.value}, {"generation", spec.tie.gen.value}};
  }
  return {{"program", spec.name.program},
          {"target",
           {{"kind", protocol::word(spec.name.kind)},
            {"typed", spec.typed},
            {"normalised", spec.name.target}}},
          {"workflow", spec.name.workflow},
          {"operation_class", spec.name.operation_class},
          {"execution_id", spec.execution_id},
          {"trace_id", spec.trace_id},
          {"metadata", std::move(metadata)},
          {"tie", std::move(tie)}};
}

/// The `key=value` lines of a counted row.
json::object counted_json(std::string_view text) {
  json::object counted;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const auto line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    const auto equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    const auto value = line.substr(equals + 1);
    std::int64_t number = 0;
    const auto read = std::from_chars(value.data(), value.data() + value.size(), number);
    if (read.ec == std::errc{} && read.ptr == value.data() + value.size()) {
      counted[line.substr(0, equals)] = number;
    } else {
      counted[line.substr(0, equals)] = value;
    }
  }
  return counted;
}

/// The whole of a lease: what a reader needs to go on without the rows before, without the payload,
/// and what a person wants to see of it.
json::object base_json(std::string_view attachment) {
  auto base = protocol::decode_base(attachment);
  if (!base) return {{"bytes", attachment.size()}, {"sha256", sha256_hex(attachment)}};
  json::object counts;
  for (const auto& each : base->image.counts) counts[protocol::word(each.reason)] = each.number;
  const bool is_lock = base->image.state.kind == protocol::lease_kind::lock;
  json::object body;
  if (is_lock) {
    if (const auto spec = actors::decode_lock(base->image.body)) body = lock_json(*spec);
  } else if (const auto spec = actors::decode_job(base->image.body)) {
    body = job_json(*spec);
  }
  body["policy"] = policy_json(base->chosen);
  base->image.body.clear();
  std::string image;
  boost::algorithm::hex_lower(protocol::encode_image(base->image), std::back_inserter(image));
  return {{is_lock ? "lock" : "job", std::move(body)},
          {"policy", policy_json(base->chosen)},
          {"counts", std::move(counts)},
          {"image", std::move(image)}};
}

json::value attachment_json(const protocol::stored_row& r, const protocol::policy* chosen) {
  if (r.attachment.empty()) return nullptr;
  if (r.input.kind == event_kind::submit) {
    const auto spec = actors::decode_job(r.attachment);
    json::object job = spec ? job_json(*spec) : json::object{};
    if (chosen != nullptr) job["policy"] = policy_json(*chosen);
    return job;
  }
  if (r.input.kind == event_kind::acquire) {
    const auto spec = actors::decode_lock(r.attachment);
    json::object lock = spec ? lock_json(*spec) : json::object{};
    if (chosen != nullptr) lock["policy"] = policy_json(*chosen);
    return lock;
  }
  if (r.input.kind == event_kind::policy) {
    const auto read = protocol::policy_from_text(r.attachment);
    return json::object{{"policy", read ? json::value(policy_json(*read)) : json::value()}};
  }
  if (r.input.kind == event_kind::base) return base_json(r.attachment);
  if (r.input.kind == event_kind::restore) {
    const auto from = protocol::grants_from_of(r.attachment);
    return json::object{{"grants_from", from ? from->ms : 0}};
  }
  if (r.input.kind == event_kind::clock_anchored) return json::object{{"basis", r.attachment}};
  if (r.input.kind == event_kind::counted) return counted_json(r.attachment);
  return json::object{{"bytes", r.attachment.size()}, {"sha256", sha256_hex(r.attachment)}};
}

json::array unproven_json(const protocol::record& r) {
  json::array out;
  for (const auto& each : r.unproven) {
    out.push_back(json::object{{"generation", each.gen.value},
                               {"holder", each.from.value},
                               {"last_sent", each.last_sent.ms}});
  }
  return out;
}

}  // namespace

bool is_record_column(std::string_view column) noexcept {
  return std::find(row_columns.begin(), row_columns.end(), column) == row_columns.end();
}

json::object policy_json(const protocol::policy& chosen) {
  json::object out;
  for (const protocol::policy_key& key : protocol::policy_keys()) {
    const auto value = key.get(chosen);
    if (const auto* number = std::get_if<std::int64_t>(&value)) out[key.name] = *number;
    if (const auto* text = std::get_if<std::string>(&value)) out[key.name] = *text;
  }
  return out;
}

json::object record_json(const protocol::record& r) {
  json::object out;
  const protocol::row shown{
      {}, event_kind::recover, protocol::origin::coordinator, nullptr, r.state, {}, false, {}, {}};
  protocol::write_cells(0, shown, r, [&out](std::string_view column, const cell& value) {
    if (is_record_column(column)) out[column] = json_of(value);
  });
  out["terminal_detail"] = r.terminal_detail;
  out["reported"] = nullptr;
  if (r.reported) {
    out["reported"] = json::object{{"outcome", protocol::word(r.reported->ending)},
                                   {"detail", r.reported->detail}};
  }
  out["unproven_generations"] = unproven_json(r);
  out["deferred"] = r.deferred.size();
  return out;
}

void append_evidence_line(std::string& out, const protocol::stored_row& r,
                          const protocol::record& after, protocol::row_number deferred_row,
                          const protocol::policy* chosen) {
  json::object line;
  line.reserve(64);
  protocol::write_cells(
      r, after, deferred_row,
      [&line](std::string_view column, const cell& value) { line[column] = json_of(value); });
  line["force"] = r.input.force;
  line["session_epoch"] = r.input.session_epoch;
  line["derived"] = r.derived;
  line["floor"] = r.floor.value;
  line["attachment"] = attachment_json(r, chosen);
  out += json::serialize(line);
  out += '\n';
}

}  // namespace leasehold::storage
