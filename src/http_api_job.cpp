#include "src/http_api_job.hpp"

#include "src/config_text.hpp"
#include "src/http_api_body.hpp"

namespace leasehold::server {
namespace {

namespace json = boost::json;
using protocol::lease_state;

void put_grant(json::object& out, const protocol::record& r) {
  out["lease_id"] = r.lease.value;
  out["job_id"] = r.job.value;
  out["kind"] = protocol::word(r.kind);
  out["state"] = protocol::word(r.state);
  out["generation"] = r.gen.value;
  out["holder_identity"] = r.held_by.value;
  out["issued_at"] = r.issued_at.ms;
  out["acquired_at"] = r.acquired_at.ms;
  out["lease_duration"] = r.lease_duration.ms;
  out["expires_at"] = r.expires_at.ms;
  out["ack_deadline"] = r.ack_deadline.ms;
  out["ack_state"] = protocol::word(r.acked);
  out["renew_sequence"] = r.renew_sequence.value;
  out["renew_time"] = r.renew_time.ms;
  out["progress_sequence"] = r.progress_sequence.value;
  out["progress_value"] = r.progress_value;
}

void put_end(json::object& out, const protocol::record& r) {
  out["cancel_requested_at"] = r.cancel_requested_at.ms;
  out["cancel_acked_at"] = r.cancel_acked_at.ms;
  out["cancel_deadline"] = r.cancel_deadline.ms;
  out["cancel"] = cancel_sentence(r);
  out["terminal_result"] = protocol::terminal_word(r.terminal_result);
  out["terminal_detail"] = r.terminal_detail;
  if (r.reported) {
    out["reported"] = json::object{{"outcome", protocol::word(r.reported->ending)},
                                   {"detail", r.reported->detail}};
  } else {
    out["reported"] = nullptr;
  }
  out["attempt"] = r.attempt;
  out["losses"] = r.losses;
  out["unproven"] = r.unproven_count();
  json::array named;
  for (const auto& u : r.unproven) {
    named.push_back(json::object{
        {"generation", u.gen.value}, {"holder", u.from.value}, {"last_sent", u.last_sent.ms}});
  }
  out["unproven_generations"] = std::move(named);
  out["frozen"] = r.frozen;
  out["next_offer_at"] = r.next_offer_at.ms;
  out["reconcile_deadline"] = r.reconcile_deadline.ms;
  out["graces"] = r.graces;
  out["deferred"] = r.deferred.size();
}

void put_payload(json::object& out, const std::string& payload) {
  if (config_text::is_utf8(payload)) {
    out["payload"] = payload;
  } else {
    out["payload_base64"] = to_base64(payload);
  }
}

void put_spec(json::object& out, const actors::job_spec& spec) {
  out["queue"] = spec.queue;
  json::object labels;
  for (const auto& [name, value] : spec.labels) labels[name] = value;
  out["labels"] = std::move(labels);
  out["priority"] = spec.priority;
  out["not_before"] = spec.not_before.ms;
  out["not_after"] = spec.not_after.ms;
  out["policy"] = to_json(spec.policy);
  out["submitted_by"] = spec.submitted_by;
  out["submitted_at"] = spec.submitted_at.ms;
  out["redrive_of"] = spec.redrive_of.value;
  out["request_id"] = spec.request.value;
  out["trace_id"] = spec.trace_id;
}

json::object to_json(const std::map<std::string, std::int64_t>& by_queue) {
  json::object out;
  for (const auto& [queue, count] : by_queue) out[queue] = count;
  return out;
}

}  // namespace

std::string cancel_sentence(const protocol::record& r) {
  if (!r.cancel_requested_at) return {};
  switch (r.state) {
    case lease_state::active:
    case lease_state::acked:
      if (r.cancel_acked_at) {
        return "The holder has heard of the cancel and must stop by cancel_deadline.";
      }
      return "The holder was asked to stop by cancel_deadline and has not answered yet.";
    case lease_state::unresolved:
      if (r.reconcile_window_over) {
        return "Nothing proves that earlier work has stopped; an operator must reconcile the job.";
      }
      return "Nobody has authority any more; waiting for a report or proof that earlier work has "
             "stopped.";
    case lease_state::cancelled:
      return "The job is cancelled and nothing of it is still at work.";
    case lease_state::completed:
      return "The holder finished before the cancel reached it.";
    case lease_state::failed:
      return "The job failed after the cancel was asked for.";
    case lease_state::none:
    case lease_state::vacant:
    case lease_state::offered:
    case lease_state::declined:
    case lease_state::expired:
    case lease_state::released:
    case lease_state::revoked:
    case lease_state::retry_wait:
      break;
  }
  return "A cancel was asked for; the job is not offered any more.";
}

json::object to_json(const protocol::policy& chosen) {
  json::object out;
  for (const auto& key : protocol::policy_keys()) {
    const auto value = key.get(chosen);
    if (const auto* number = std::get_if<std::int64_t>(&value)) {
      out[key.name] = *number;
    } else {
      out[key.name] = std::get<std::string>(value);
    }
  }
  return out;
}

json::object to_json(const actors::lease_view& job, bool with_payload) {
  json::object out;
  put_grant(out, *job.state);
  put_end(out, *job.state);
  put_spec(out, *job.spec);
  out["policy_id"] = protocol::to_text(job.policy);
  out["row"] = job.row.value;
  if (with_payload) put_payload(out, job.spec->payload);
  return out;
}

json::object to_json(const actors::worker_view& worker) {
  return {{"holder", worker.holder.value}, {"epoch", worker.epoch},
          {"client", worker.client},       {"slots", to_json(worker.slots)},
          {"held", to_json(worker.held)},  {"connected_at", worker.connected_at.ms}};
}

json::object to_json(const actors::queue_view& queue) {
  return {{"queue", queue.queue},           {"ready", queue.ready},      {"waiting", queue.waiting},
          {"offered", queue.offered},       {"held", queue.held},        {"workers", queue.workers},
          {"free_slots", queue.free_slots}, {"oldest", queue.oldest.ms}, {"limit", queue.limit}};
}

lease_brief brief_of(const actors::lease_view& job) {
  return {job.state->state, job.state->gen, job.state->expires_at};
}

}  // namespace leasehold::server
