// Frames of the coordinator, to and from the wire.
#include <limits>
#include <utility>

#include "codec_wire.hpp"

namespace leasehold::protocol::wire {
namespace {

// The numbers of the wire are those of the enums; a reason that lacks its word here stops the
// build.
#define LEASEHOLD_REASON(name, number, class_, status, text) \
  static_assert(static_cast<int>(v1::Reason::name) == (number));
#include "leasehold/protocol/reason.def"
#undef LEASEHOLD_REASON
static_assert(static_cast<int>(v1::Decision::deferred) == static_cast<int>(decision::deferred));
static_assert(static_cast<int>(v1::ReasonClass::unknown_outcome) ==
              static_cast<int>(reason_class::unknown_outcome));
static_assert(static_cast<int>(v1::LeaseState::cancelled) ==
              static_cast<int>(lease_state::cancelled));
static_assert(static_cast<int>(v1::LeaseState::retry_wait) ==
              static_cast<int>(lease_state::retry_wait));
static_assert(static_cast<int>(v1::Outcome::cancelled) == static_cast<int>(outcome::cancelled));
static_assert(static_cast<int>(v1::Loss::settled) == static_cast<int>(loss::settled));

void read_standing(v1::LeaseStanding& from, bounds& found, lease_standing& to) {
  found.optional_id("lease_id", from.lease_id());
  to.lease.value = std::move(*from.mutable_lease_id());
  to.gen.value = from.generation();
  to.row.value = from.row();
  to.state = enum_from(from.state(), lease_state::none, lease_state::cancelled, lease_state::none);
  to.expires_at.ms = from.expires_at();
  to.renew_sequence.value = from.renew_sequence();
  to.progress_sequence.value = from.progress_sequence();
  to.cancel_requested = from.cancel_requested();
  to.cancel_deadline.ms = from.cancel_deadline();
}

void write_standing(const lease_standing& from, v1::LeaseStanding& to) {
  to.set_lease_id(from.lease.value);
  to.set_generation(from.gen.value);
  to.set_row(from.row.value);
  to.set_state(static_cast<v1::LeaseState_Word>(from.state));
  to.set_expires_at(from.expires_at.ms);
  to.set_renew_sequence(from.renew_sequence.value);
  to.set_progress_sequence(from.progress_sequence.value);
  to.set_cancel_requested(from.cancel_requested);
  to.set_cancel_deadline(from.cancel_deadline.ms);
}

void read_lost(v1::LostLease& from, bounds& found, lost_lease& to) {
  found.id("lease_id", from.lease_id());
  to.lease.value = std::move(*from.mutable_lease_id());
  to.gen.value = from.generation();
  to.row.value = from.row();
  to.why = enum_from(from.why(), loss::expired, loss::settled, loss::expired);
}

void write_lost(const lost_lease& from, v1::LostLease& to) {
  to.set_lease_id(from.lease.value);
  to.set_generation(from.gen.value);
  to.set_row(from.row.value);
  to.set_why(static_cast<v1::Loss_Word>(from.why));
}

welcome read_body(v1::Welcome& from, bounds& found) {
  welcome to;
  found.holder(from.holder());
  to.holder.value = std::move(*from.mutable_holder());
  to.session_epoch = from.session_epoch();
  for (auto& standing : *from.mutable_resumed()) {
    read_standing(standing, found, to.resumed.emplace_back());
  }
  for (auto& lost : *from.mutable_lost()) read_lost(lost, found, to.lost.emplace_back());
  to.server_time.ms = from.server_time();
  to.frames_in_flight = from.frames_in_flight();
  to.message_bytes = from.message_bytes();
  to.heartbeat_interval.ms = from.heartbeat_interval_ms();
  found.length("node", from.node(), most_label_bytes);
  to.node = std::move(*from.mutable_node());
  return to;
}

/// A reason that is newer than this side keeps its number; what to do about it stands in the class.
reason read_reason(int number) {
  const bool fits = number >= 0 && number <= std::numeric_limits<std::uint16_t>::max();
  return fits ? static_cast<reason>(number) : reason::none;
}

frame_verdict read_body(v1::Verdict& from, bounds& found) {
  frame_verdict to;
  to.answers = static_cast<std::int64_t>(from.answers());
  to.epoch = from.epoch();
  to.decision =
      enum_from(from.decision(), decision::accepted, decision::deferred, decision::rejected);
  to.reason = read_reason(from.reason());
  to.outcome = enum_from(from.class_(), reason_class::ok, reason_class::unknown_outcome,
                         reason_class::permanent);
  to.retry_after.ms = from.retry_after_ms();
  if (from.has_standing()) read_standing(*from.mutable_standing(), found, to.standing);
  if (from.has_grant()) to.grant = {{from.grant().generation()}, from.grant().holds()};
  return to;
}

offer read_body(v1::Offer& from, bounds& found) {
  offer to;
  read_standing(*from.mutable_standing(), found, to.standing);
  found.id("job_id", from.job_id());
  found.id("queue", from.queue());
  found.length("payload", from.payload(), most_payload_bytes);
  found.value("last_progress", from.last_progress());
  found.length("trace_id", from.trace_id(), most_name_bytes);
  to.job.value = std::move(*from.mutable_job_id());
  to.queue = std::move(*from.mutable_queue());
  to.payload = std::move(*from.mutable_payload());
  to.attempt = from.attempt();
  to.ack_deadline.ms = from.ack_deadline();
  to.lease_duration.ms = from.lease_duration_ms();
  to.cancel_grace.ms = from.cancel_grace_ms();
  to.max_lifetime.ms = from.max_lifetime_ms();
  to.last_progress = std::move(*from.mutable_last_progress());
  to.trace_id = std::move(*from.mutable_trace_id());
  return to;
}

activated read_body(v1::Activated& from, bounds& found) {
  activated to;
  read_standing(*from.mutable_standing(), found, to.standing);
  to.acquired_at.ms = from.acquired_at();
  return to;
}

cancel_notice read_body(v1::CancelRequested& from, bounds& found) {
  cancel_notice to;
  read_standing(*from.mutable_standing(), found, to.standing);
  return to;
}

lease_lost read_body(v1::LeaseLost& from, bounds& found) {
  lease_lost to;
  read_lost(*from.mutable_lost(), found, to.lost);
  return to;
}

granted read_body(v1::Granted& from, bounds& found) {
  granted to;
  read_standing(*from.mutable_standing(), found, to.standing);
  found.request(from.request_id());
  to.request.value = std::move(*from.mutable_request_id());
  return to;
}

drain read_body(v1::Drain& from, bounds& found) {
  found.length("where", from.where(), most_label_bytes);
  return {.release_by = {from.release_by()}, .where = std::move(*from.mutable_where())};
}

server_heartbeat read_body(v1::CoordinatorHeartbeat& from, bounds&) {
  return {{from.server_time()}};
}

void write_body(const welcome& from, v1::CoordinatorFrame& to) {
  auto& body = *to.mutable_welcome();
  body.set_holder(from.holder.value);
  body.set_session_epoch(from.session_epoch);
  for (const auto& standing : from.resumed) write_standing(standing, *body.add_resumed());
  for (const auto& lost : from.lost) write_lost(lost, *body.add_lost());
  body.set_server_time(from.server_time.ms);
  body.set_frames_in_flight(from.frames_in_flight);
  body.set_message_bytes(from.message_bytes);
  body.set_heartbeat_interval_ms(from.heartbeat_interval.ms);
  body.set_node(from.node);
}

void write_body(const frame_verdict& from, v1::CoordinatorFrame& to) {
  auto& body = *to.mutable_verdict();
  body.set_answers(static_cast<std::uint64_t>(from.answers));
  body.set_epoch(from.epoch);
  body.set_decision(static_cast<v1::Decision_Word>(from.decision));
  body.set_reason(static_cast<v1::Reason_Word>(from.reason));
  body.set_class_(static_cast<v1::ReasonClass_Word>(from.outcome));
  body.set_retry_after_ms(from.retry_after.ms);
  if (from.standing != lease_standing{}) write_standing(from.standing, *body.mutable_standing());
  if (from.grant.gen.value != 0) {
    body.mutable_grant()->set_generation(from.grant.gen.value);
    body.mutable_grant()->set_holds(from.grant.holds);
  }
}

void write_body(const offer& from, v1::CoordinatorFrame& to) {
  auto& body = *to.mutable_offer();
  write_standing(from.standing, *body.mutable_standing());
  body.set_job_id(from.job.value);
  body.set_queue(from.queue);
  body.set_payload(from.payload);
  body.set_attempt(from.attempt);
  body.set_ack_deadline(from.ack_deadline.ms);
  body.set_lease_duration_ms(from.lease_duration.ms);
  body.set_cancel_grace_ms(from.cancel_grace.ms);
  body.set_max_lifetime_ms(from.max_lifetime.ms);
  body.set_last_progress(from.last_progress);
  body.set_trace_id(from.trace_id);
}

void write_body(const activated& from, v1::CoordinatorFrame& to) {
  auto& body = *to.mutable_activated();
  write_standing(from.standing, *body.mutable_standing());
  body.set_acquired_at(from.acquired_at.ms);
}

void write_body(const cancel_notice& from, v1::CoordinatorFrame& to) {
  write_standing(from.standing, *to.mutable_cancel_requested()->mutable_standing());
}

void write_body(const lease_lost& from, v1::CoordinatorFrame& to) {
  write_lost(from.lost, *to.mutable_lease_lost()->mutable_lost());
}

void write_body(const granted& from, v1::CoordinatorFrame& to) {
  auto& body = *to.mutable_granted();
  write_standing(from.standing, *body.mutable_standing());
  body.set_request_id(from.request.value);
}

void write_body(const drain& from, v1::CoordinatorFrame& to) {
  to.mutable_drain()->set_release_by(from.release_by.ms);
  to.mutable_drain()->set_where(from.where);
}

void write_body(const server_heartbeat& from, v1::CoordinatorFrame& to) {
  to.mutable_heartbeat()->set_server_time(from.server_time.ms);
}

template <class Message>
void read_into(Message& body, bounds& found, coordinator_frame& to) {
  to.body = read_body(body, found);
}

}  // namespace

std::optional<coordinator_frame> read(v1::CoordinatorFrame& from, bounds& found,
                                      bool& unsupported) {
  coordinator_frame to;
  found.frame_id(from.frame_id());
  to.frame_id = static_cast<std::int64_t>(from.frame_id());
  switch (from.body_case()) {
    case v1::CoordinatorFrame::kVerdict:
      read_into(*from.mutable_verdict(), found, to);
      break;
    case v1::CoordinatorFrame::kOffer:
      read_into(*from.mutable_offer(), found, to);
      break;
    case v1::CoordinatorFrame::kActivated:
      read_into(*from.mutable_activated(), found, to);
      break;
    case v1::CoordinatorFrame::kCancelRequested:
      read_into(*from.mutable_cancel_requested(), found, to);
      break;
    case v1::CoordinatorFrame::kLeaseLost:
      read_into(*from.mutable_lease_lost(), found, to);
      break;
    case v1::CoordinatorFrame::kGranted:
      read_into(*from.mutable_granted(), found, to);
      break;
    case v1::CoordinatorFrame::kDrain:
      read_into(*from.mutable_drain(), found, to);
      break;
    case v1::CoordinatorFrame::kHeartbeat:
      read_into(*from.mutable_heartbeat(), found, to);
      break;
    case v1::CoordinatorFrame::kWelcome:
      read_into(*from.mutable_welcome(), found, to);
      break;
    case v1::CoordinatorFrame::BODY_NOT_SET:
      unsupported = true;
      return std::nullopt;
  }
  if (found.broken()) return std::nullopt;
  return to;
}

void write(const coordinator_frame& from, v1::CoordinatorFrame& to) {
  to.set_frame_id(static_cast<std::uint64_t>(from.frame_id));
  std::visit([&](const auto& body) { write_body(body, to); }, from.body);
}

}  // namespace leasehold::protocol::wire
