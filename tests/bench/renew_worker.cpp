#include "renew_worker.hpp"

#include <algorithm>
#include <span>
#include <utility>
#include <variant>

namespace leasehold::bench {

using protocol::event_kind;

namespace {
/// Offers that one message accepts.
constexpr std::size_t acks_at_once = 256;
}  // namespace

renew_worker::renew_worker(const options& how) : how_(how), stream_(how.port, how.token) {
  protocol::hello said;
  said.incarnation = how_.incarnation;
  said.client_name = "load";
  said.queues.push_back({how_.queue, {}});
  frames_.push_back({next_frame_++, std::move(said)});
  used_ = 1;
  say();
}

void renew_worker::renew(std::size_t batch, std::size_t messages) {
  batch_ = batch;
  messages_ = messages;
}

void renew_worker::turn() {
  while (const auto bytes = stream_.next()) {
    const auto read = codec_.decode_coordinator(std::as_bytes(std::span(*bytes)));
    for (const auto& frame : read.frames) hear(frame);
  }
  accept_offers();
  send_renews();
}

void renew_worker::hear(const protocol::coordinator_frame& frame) {
  if (const auto* verdict = std::get_if<protocol::frame_verdict>(&frame.body)) {
    answered(*verdict);
  } else if (const auto* offer = std::get_if<protocol::offer>(&frame.body)) {
    offered_.push_back(offer->standing);
  } else if (const auto* began = std::get_if<protocol::activated>(&frame.body)) {
    held_.push_back({began->standing.lease, began->standing.gen});
  } else if (const auto* welcome = std::get_if<protocol::welcome>(&frame.body)) {
    welcomed(*welcome);
  } else if (std::holds_alternative<protocol::lease_lost>(frame.body)) {
    ++lost_;
  }
}

void renew_worker::welcomed(const protocol::welcome& what) {
  holder_ = what.holder;
  clock_.set(what.server_time);
  frames_.resize(1);
  frames_[0] = {next_frame_++, protocol::credit{what.session_epoch, {1}, how_.queue, how_.leases}};
  used_ = 1;
  say();
}

void renew_worker::answered(const protocol::frame_verdict& what) {
  const auto at = std::ranges::find_if(flying_, [&](const message& m) {
    return what.answers >= m.first && what.answers < m.first + static_cast<std::int64_t>(batch_);
  });
  if (at == flying_.end()) return;
  (what.decision == protocol::decision::accepted ? tally_.accepted : tally_.refused) += 1;
  if (--at->unanswered > 0) return;
  const auto took = std::chrono::steady_clock::now() - at->sent;
  tally_.latencies_us.push_back(static_cast<std::uint32_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(took).count()));
  flying_.erase(at);
}

void renew_worker::accept_offers() {
  for (const auto& each : offered_) {
    auto& frame = next_frame(event_kind::ack);
    frame.what.lease = each.lease;
    frame.what.gen = each.gen;
    frame.what.seq = {};
    if (used_ == acks_at_once) say();
  }
  offered_.clear();
  if (used_ > 0) say();
}

void renew_worker::send_renews() {
  while (flying_.size() < messages_) send_message();
}

void renew_worker::renew_one() {
  batch_ = 1;
  if (!held_.empty()) send_message();
}

void renew_worker::send_message() {
  flying_.push_back({next_frame_, batch_, std::chrono::steady_clock::now()});
  for (std::size_t i = 0; i < batch_; ++i) {
    auto& lease = held_[next_held_];
    next_held_ = (next_held_ + 1) % held_.size();
    auto& frame = next_frame(event_kind::renew);
    frame.what.lease.value.assign(lease.lease.value);
    frame.what.gen = lease.gen;
    frame.what.seq = {++lease.renews};
  }
  say();
}

void renew_worker::say() {
  bytes_.clear();
  codec_.encode(std::span<const protocol::worker_frame>(frames_.data(), used_), bytes_);
  stream_.send(bytes_);
  used_ = 0;
}

protocol::lease_frame& renew_worker::next_frame(event_kind kind) {
  if (used_ == frames_.size()) frames_.emplace_back();
  auto& frame = frames_[used_++];
  frame.frame_id = next_frame_++;
  if (!std::holds_alternative<protocol::lease_frame>(frame.body)) {
    frame.body = protocol::lease_frame{};
  }
  auto& body = std::get<protocol::lease_frame>(frame.body);
  body.what.kind = kind;
  body.what.from = holder_;
  body.what.sent_at = clock_.now();
  return body;
}

}  // namespace leasehold::bench
