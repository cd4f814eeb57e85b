#include "lock_worker.hpp"

#include <span>
#include <variant>

namespace leasehold::bench {

using protocol::event_kind;
using protocol::reason;

lock_worker::lock_worker(const options& how) : how_(how), stream_(how.port, how.token) {
  protocol::hello said;
  said.incarnation = how_.incarnation;
  said.client_name = "load";
  frames_.push_back({next_frame_++, std::move(said)});
  say();
}

void lock_worker::turn() {
  while (const auto bytes = stream_.next()) {
    const auto read = codec_.decode_coordinator(std::as_bytes(std::span(*bytes)));
    for (const auto& frame : read.frames) hear(frame);
  }
  if (!welcome_ || unanswered_ > 0) return;
  if (!held_.empty()) {
    release_all();
  } else if (goes_on_) {
    acquire_all();
  }
}

void lock_worker::hear(const protocol::coordinator_frame& frame) {
  if (const auto* verdict = std::get_if<protocol::frame_verdict>(&frame.body)) {
    answered(*verdict);
  } else if (const auto* welcome = std::get_if<protocol::welcome>(&frame.body)) {
    holder_ = welcome->holder;
    clock_.set(welcome->server_time);
    welcome_ = true;
  }
}

void lock_worker::answered(const protocol::frame_verdict& what) {
  if (what.reason == reason::acquired) {
    held_.push_back(what.standing);
  } else if (what.reason == reason::released) {
    ++tally_.pairs;
  } else {
    ++tally_.refused;
    tally_.refusal = what.reason;
  }
  if (--unanswered_ > 0) return;
  const auto took = std::chrono::steady_clock::now() - sent_;
  tally_.latencies_us.push_back(static_cast<std::uint32_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(took).count()));
}

void lock_worker::acquire_all() {
  for (std::size_t i = 0; i < how_.batch; ++i) {
    protocol::acquire wanted;
    wanted.what.kind = event_kind::acquire;
    wanted.what.from = holder_;
    wanted.what.sent_at = clock_.now();
    wanted.what.request.value = std::to_string(how_.batch) + "." + std::to_string(next_request_++);
    wanted.name.program = "load";
    wanted.name.kind = protocol::target_kind::opaque;
    wanted.name.target = how_.incarnation + "-" + std::to_string(i);
    frames_.push_back({next_frame_++, std::move(wanted)});
  }
  say();
}

void lock_worker::release_all() {
  for (const auto& each : held_) {
    protocol::lease_frame frame;
    frame.what.kind = event_kind::release;
    frame.what.lease = each.lease;
    frame.what.gen = each.gen;
    frame.what.from = holder_;
    frame.what.sent_at = clock_.now();
    frames_.push_back({next_frame_++, std::move(frame)});
  }
  held_.clear();
  say();
}

void lock_worker::say() {
  unanswered_ = welcome_ ? frames_.size() : 0;
  sent_ = std::chrono::steady_clock::now();
  bytes_.clear();
  codec_.encode(std::span<const protocol::worker_frame>(frames_), bytes_);
  stream_.send(bytes_);
  frames_.clear();
}

}  // namespace leasehold::bench
