// Frames of the worker, to and from the wire.
#include <charconv>
#include <type_traits>
#include <utility>

#include "codec_wire.hpp"

namespace leasehold::protocol::wire {
namespace {

/// The outcome as the sender wrote it; a number without a word is kept as text for the evidence.
void read_outcome(int number, event& to) {
  if (number > 0 && number <= static_cast<int>(outcome::cancelled)) {
    to.ending = static_cast<outcome>(number);
  } else if (number != 0) {
    to.unknown_outcome = std::to_string(number);
  }
}

v1::Outcome_Word outcome_number(const event& from) {
  int number = static_cast<int>(from.ending);
  if (number == 0 && !from.unknown_outcome.empty()) {
    const auto& text = from.unknown_outcome;
    std::from_chars(text.data(), text.data() + text.size(), number);
  }
  return static_cast<v1::Outcome_Word>(number);
}

/// Fields 1, 3 and 4, which every frame about a lease has.
template <class Message>
void read_sender(Message& from, bounds& found, event& to) {
  found.id("lease_id", from.lease_id());
  found.holder(from.holder());
  to.lease.value = std::move(*from.mutable_lease_id());
  to.from.value = std::move(*from.mutable_holder());
  to.sent_at.ms = from.sent_at();
  found.number("sent_at", to.sent_at.ms);
}

template <class Message>
event& read_judged(Message& from, event_kind kind, bounds& found, lease_frame& to) {
  to.what.kind = kind;
  read_sender(from, found, to.what);
  to.what.gen.value = from.generation();
  found.number("generation", to.what.gen.value);
  return to.what;
}

template <class Message>
void read_request(Message& from, bounds& found, event& to) {
  found.request(from.request_id());
  to.request.value = std::move(*from.mutable_request_id());
}

lease_frame read_body(v1::Ack& from, bounds& found) {
  lease_frame to;
  read_judged(from, event_kind::ack, found, to);
  return to;
}

lease_frame read_body(v1::Decline& from, bounds& found) {
  lease_frame to;
  read_judged(from, event_kind::decline, found, to);
  found.detail("reason", from.reason());
  to.decline_reason = std::move(*from.mutable_reason());
  return to;
}

lease_frame read_body(v1::Renew& from, bounds& found) {
  lease_frame to;
  auto& what = read_judged(from, event_kind::renew, found, to);
  what.seq.value = from.sequence();
  found.number("sequence", what.seq.value);
  read_request(from, found, what);
  return to;
}

lease_frame read_body(v1::Progress& from, bounds& found) {
  lease_frame to;
  auto& what = read_judged(from, event_kind::progress, found, to);
  found.value("value", from.value());
  what.seq.value = from.sequence();
  found.number("sequence", what.seq.value);
  what.value = std::move(*from.mutable_value());
  return to;
}

lease_frame read_body(v1::CancelAck& from, bounds& found) {
  lease_frame to;
  read_judged(from, event_kind::cancel_ack, found, to);
  return to;
}

lease_frame read_body(v1::Result& from, bounds& found) {
  lease_frame to;
  auto& what = read_judged(from, event_kind::result, found, to);
  found.detail("detail", from.detail());
  found.value("last_progress_value", from.last_progress_value());
  read_outcome(static_cast<int>(from.outcome()), what);
  what.detail = std::move(*from.mutable_detail());
  what.retryable = from.retryable();
  to.last_progress_sequence.value = from.last_progress_sequence();
  found.number("last_progress_sequence", to.last_progress_sequence.value);
  to.last_progress_value = std::move(*from.mutable_last_progress_value());
  return to;
}

lease_frame read_body(v1::Release& from, bounds& found) {
  lease_frame to;
  read_request(from, found, read_judged(from, event_kind::release, found, to));
  return to;
}

acquire read_body(v1::Acquire& from, bounds& found) {
  acquire to;
  read(from, found, to);
  return to;
}

stop_waiting read_body(v1::StopWaiting& from, bounds& found) {
  stop_waiting to;
  read(from, found, to);
  return to;
}

process_registration read_body(v1::RegisterProcess& from, bounds& found) {
  found.id("lease_id", from.lease_id());
  found.number("generation", from.generation());
  found.holder(from.holder());
  process_registration to;
  to.process = {.platform = std::move(*from.mutable_platform()),
                .pid = from.pid(),
                .boot_id = std::move(*from.mutable_boot_id()),
                .start_ticks = from.start_ticks(),
                .process_group = from.process_group()};
  found.process(to.process);
  to.lease.value = std::move(*from.mutable_lease_id());
  to.gen.value = from.generation();
  to.from.value = std::move(*from.mutable_holder());
  return to;
}

hello read_body(v1::Hello& from, bounds& found) {
  hello to;
  found.incarnation(from.incarnation());
  found.length("client_name", from.client_name(), most_name_bytes);
  found.length("client_version", from.client_version(), most_name_bytes);
  to.incarnation = std::move(*from.mutable_incarnation());
  to.client_name = std::move(*from.mutable_client_name());
  to.client_version = std::move(*from.mutable_client_version());
  to.highest_frame_kind = from.highest_frame_kind();
  for (auto& queue : *from.mutable_queues()) {
    found.id("queues.queue", queue.queue());
    auto& added = to.queues.emplace_back();
    added.queue = std::move(*queue.mutable_queue());
    for (auto& [name, value] : *queue.mutable_labels()) {
      found.id("queues.labels", name);
      found.length("queues.labels", value, most_label_bytes);
      added.has.emplace(name, std::move(value));
    }
  }
  for (auto& lease : *from.mutable_running()) read(lease, found, to.running.emplace_back());
  return to;
}

credit read_body(v1::Credit& from, bounds& found) {
  found.id("queue", from.queue());
  return {.epoch = from.epoch(),
          .seq = {from.sequence()},
          .queue = std::move(*from.mutable_queue()),
          .slots = from.slots()};
}

worker_heartbeat read_body(v1::WorkerHeartbeat& from, bounds&) { return {from.echoed_stamp()}; }

goodbye read_body(v1::Goodbye& from, bounds& found) {
  goodbye to;
  for (auto& lease : *from.mutable_releases()) read(lease, found, to.releases.emplace_back());
  return to;
}

/// Fields 1, 3 and 4.
template <class Message>
Message& write_sender(const event& from, Message& to) {
  to.set_lease_id(from.lease.value);
  to.set_holder(from.from.value);
  to.set_sent_at(from.sent_at.ms);
  return to;
}

/// Fields 1 to 4.
template <class Message>
Message& write_judged(const event& from, Message& to) {
  write_sender(from, to).set_generation(from.gen.value);
  return to;
}

void write_result(const lease_frame& from, v1::Result& to) {
  write_judged(from.what, to);
  to.set_outcome(outcome_number(from.what));
  to.set_detail(from.what.detail);
  to.set_retryable(from.what.retryable);
  to.set_last_progress_sequence(from.last_progress_sequence.value);
  to.set_last_progress_value(from.last_progress_value);
}

void write_body(const lease_frame& from, v1::WorkerFrame& to) {
  const auto& what = from.what;
  switch (what.kind) {
    case event_kind::ack:
      write_judged(what, *to.mutable_ack());
      break;
    case event_kind::decline:
      write_judged(what, *to.mutable_decline()).set_reason(from.decline_reason);
      break;
    case event_kind::renew:
      write_judged(what, *to.mutable_renew()).set_sequence(what.seq.value);
      to.mutable_renew()->set_request_id(what.request.value);
      break;
    case event_kind::progress:
      write_judged(what, *to.mutable_progress()).set_sequence(what.seq.value);
      to.mutable_progress()->set_value(what.value);
      break;
    case event_kind::cancel_ack:
      write_judged(what, *to.mutable_cancel_ack());
      break;
    case event_kind::result:
      write_result(from, *to.mutable_result());
      break;
    case event_kind::release:
      write_judged(what, *to.mutable_release()).set_request_id(what.request.value);
      break;
    case event_kind::acquire:
    case event_kind::submit:
    case event_kind::offer:
    case event_kind::withdraw:
    case event_kind::cancel:
    case event_kind::revoke:
    case event_kind::resolve:
    case event_kind::reconcile:
    case event_kind::prove:
    case event_kind::recover:
    case event_kind::activate:
    case event_kind::expire:
    case event_kind::reconcile_close:
    case event_kind::stop:
    case event_kind::clock_anchored:
    case event_kind::policy:
    case event_kind::forget:
    case event_kind::base:
    case event_kind::counted:
    case event_kind::restore:
      break;  // not a frame of the stream: the body stays empty
  }
  to.set_trace_id(what.trace_id);
}

void write_body(const hello& from, v1::WorkerFrame& to) {
  auto& body = *to.mutable_hello();
  body.set_incarnation(from.incarnation);
  body.set_client_name(from.client_name);
  body.set_client_version(from.client_version);
  body.set_highest_frame_kind(from.highest_frame_kind);
  for (const auto& queue : from.queues) {
    auto& added = *body.add_queues();
    added.set_queue(queue.queue);
    for (const auto& [name, value] : queue.has) (*added.mutable_labels())[name] = value;
  }
  for (const auto& lease : from.running) write(lease, *body.add_running());
}

void write_body(const credit& from, v1::WorkerFrame& to) {
  auto& body = *to.mutable_credit();
  body.set_epoch(from.epoch);
  body.set_sequence(from.seq.value);
  body.set_queue(from.queue);
  body.set_slots(from.slots);
}

void write_body(const worker_heartbeat& from, v1::WorkerFrame& to) {
  to.mutable_heartbeat()->set_echoed_stamp(from.echoed_stamp);
}

void write_body(const acquire& from, v1::WorkerFrame& to) {
  write(from, *to.mutable_acquire());
  to.set_trace_id(from.what.trace_id);
}

void write_body(const stop_waiting& from, v1::WorkerFrame& to) {
  write(from, *to.mutable_stop_waiting());
}

void write_body(const process_registration& from, v1::WorkerFrame& to) {
  auto& body = *to.mutable_register_process();
  body.set_lease_id(from.lease.value);
  body.set_generation(from.gen.value);
  body.set_holder(from.from.value);
  body.set_platform(from.process.platform);
  body.set_pid(from.process.pid);
  body.set_boot_id(from.process.boot_id);
  body.set_start_ticks(from.process.start_ticks);
  body.set_process_group(from.process.process_group);
}

void write_body(const goodbye& from, v1::WorkerFrame& to) {
  auto& body = *to.mutable_goodbye();
  for (const auto& lease : from.releases) write(lease, *body.add_releases());
}

template <class Message>
void read_into(Message& body, bounds& found, worker_frame& to) {
  to.body = read_body(body, found);
}

}  // namespace

void read(v1::RunningLease& from, bounds& found, running_lease& to) {
  found.id("lease_id", from.lease_id());
  to = {.lease = lease_id(std::move(*from.mutable_lease_id())),
        .gen = {from.generation()},
        .row = {from.row()}};
}

void write(const running_lease& from, v1::RunningLease& to) {
  to.set_lease_id(from.lease.value);
  to.set_generation(from.gen.value);
  to.set_row(from.row.value);
}

std::optional<worker_frame> read(v1::WorkerFrame& from, bounds& found, bool& unsupported) {
  worker_frame to;
  found.frame_id(from.frame_id());
  found.length("trace_id", from.trace_id(), most_name_bytes);
  to.frame_id = static_cast<std::int64_t>(from.frame_id());
  switch (from.body_case()) {
    case v1::WorkerFrame::kHello:
      read_into(*from.mutable_hello(), found, to);
      break;
    case v1::WorkerFrame::kCredit:
      read_into(*from.mutable_credit(), found, to);
      break;
    case v1::WorkerFrame::kHeartbeat:
      read_into(*from.mutable_heartbeat(), found, to);
      break;
    case v1::WorkerFrame::kGoodbye:
      read_into(*from.mutable_goodbye(), found, to);
      break;
    case v1::WorkerFrame::kAck:
      read_into(*from.mutable_ack(), found, to);
      break;
    case v1::WorkerFrame::kDecline:
      read_into(*from.mutable_decline(), found, to);
      break;
    case v1::WorkerFrame::kRenew:
      read_into(*from.mutable_renew(), found, to);
      break;
    case v1::WorkerFrame::kProgress:
      read_into(*from.mutable_progress(), found, to);
      break;
    case v1::WorkerFrame::kCancelAck:
      read_into(*from.mutable_cancel_ack(), found, to);
      break;
    case v1::WorkerFrame::kResult:
      read_into(*from.mutable_result(), found, to);
      break;
    case v1::WorkerFrame::kRelease:
      read_into(*from.mutable_release(), found, to);
      break;
    case v1::WorkerFrame::kAcquire:
      read_into(*from.mutable_acquire(), found, to);
      break;
    case v1::WorkerFrame::kStopWaiting:
      read_into(*from.mutable_stop_waiting(), found, to);
      break;
    case v1::WorkerFrame::kRegisterProcess:
      read_into(*from.mutable_register_process(), found, to);
      break;
    case v1::WorkerFrame::BODY_NOT_SET:
      unsupported = true;
      return std::nullopt;
  }
  if (found.broken()) return std::nullopt;
  if (auto* about = std::get_if<lease_frame>(&to.body)) {
    about->what.frame_id = to.frame_id;
    about->what.trace_id = std::move(*from.mutable_trace_id());
  } else if (auto* wanted = std::get_if<acquire>(&to.body)) {
    wanted->what.frame_id = to.frame_id;
    wanted->what.trace_id = std::move(*from.mutable_trace_id());
  }
  return to;
}

void write(const worker_frame& from, v1::WorkerFrame& to) {
  to.set_frame_id(static_cast<std::uint64_t>(from.frame_id));
  std::visit([&](const auto& body) { write_body(body, to); }, from.body);
}

}  // namespace leasehold::protocol::wire
