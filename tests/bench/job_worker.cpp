#include "job_worker.hpp"

#include <span>
#include <variant>

namespace leasehold::bench {

using protocol::event_kind;
using protocol::reason;

job_worker::job_worker(const options& how) : how_(how), stream_(how.port, how.token) {
  protocol::hello said;
  said.incarnation = how_.incarnation;
  said.client_name = "load";
  said.queues.push_back({how_.queue, {}});
  frames_.push_back({next_frame_++, std::move(said)});
  say();
}

void job_worker::turn() {
  while (const auto bytes = stream_.next()) {
    const auto read = codec_.decode_coordinator(std::as_bytes(std::span(*bytes)));
    for (const auto& frame : read.frames) hear(frame);
  }
  if (!frames_.empty()) say();
}

void job_worker::hear(const protocol::coordinator_frame& frame) {
  if (const auto* verdict = std::get_if<protocol::frame_verdict>(&frame.body)) {
    answered(*verdict);
  } else if (const auto* offer = std::get_if<protocol::offer>(&frame.body)) {
    held_[offer->standing.lease.value] = {offer->standing.gen, clock::now()};
    put(event_kind::ack, offer->standing.lease, offer->standing.gen);
  } else if (const auto* began = std::get_if<protocol::activated>(&frame.body)) {
    put(event_kind::renew, began->standing.lease, began->standing.gen);
  } else if (const auto* welcome = std::get_if<protocol::welcome>(&frame.body)) {
    holder_ = welcome->holder;
    clock_.set(welcome->server_time);
    frames_.push_back(
        {next_frame_++, protocol::credit{welcome->session_epoch, {1}, how_.queue, how_.slots}});
  }
}

void job_worker::answered(const protocol::frame_verdict& what) {
  if (what.decision != protocol::decision::accepted) {
    ++tally_.refused;
    tally_.refusal = what.reason;
    return;
  }
  if (what.reason == reason::renewed) {
    put(event_kind::result, what.standing.lease, what.standing.gen);
  } else if (what.reason == reason::completed) {
    const auto job = held_.extract(what.standing.lease.value);
    if (job.empty()) return;
    ++tally_.ended;
    tally_.latencies_us.push_back(static_cast<std::uint32_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(clock::now() - job.mapped().offered)
            .count()));
  }
}

void job_worker::put(event_kind kind, const protocol::lease_id& lease, protocol::generation gen) {
  protocol::lease_frame frame;
  frame.what.kind = kind;
  frame.what.lease = lease;
  frame.what.gen = gen;
  frame.what.from = holder_;
  frame.what.sent_at = clock_.now();
  if (kind == event_kind::renew) frame.what.seq = {1};
  if (kind == event_kind::result) frame.what.ending = protocol::outcome::success;
  frames_.push_back({next_frame_++, std::move(frame)});
}

void job_worker::say() {
  bytes_.clear();
  codec_.encode(std::span<const protocol::worker_frame>(frames_), bytes_);
  stream_.send(bytes_);
  frames_.clear();
}

}  // namespace leasehold::bench
