// A worker session against the fake coordinator on one virtual clock, with a channel each way.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "leasehold/client/chaos.hpp"
#include "leasehold/client/worker_session.hpp"
#include "support/fake_coordinator.hpp"

namespace leasehold::tests {

using client::grant;
using client::local_time;

inline grant grant_of(std::string lease, std::int64_t gen) {
  return {protocol::lease_id(std::move(lease)), {gen}};
}

class session_bench {
 public:
  /// Coordinator time is local time and this: the two clocks never look alike.
  static constexpr std::int64_t ahead_ms = 1'000'000'000;

  explicit session_bench(client::chaos_options chaos = {}, std::int64_t slots = 4)
      : session_bench(options(slots), chaos) {}
  explicit session_bench(client::session_options chosen, client::chaos_options chaos = {})
      : session(std::move(chosen)), to_coordinator(chaos, 0), to_worker(chaos, 1) {}

  static client::session_options options(std::int64_t slots) {
    client::session_options chosen;
    chosen.incarnation = std::string(32, 'a');
    chosen.queues = {{"q", slots, {}}};
    chosen.jitter_seed = 1;
    return chosen;
  }

  [[nodiscard]] protocol::instant server_now() const { return {now.ms + ahead_ms}; }

  void connect() {
    session.open(now);
    connected = true;
    settle();
  }
  void disconnect(std::uint16_t code = 0) {
    connected = false;
    session.close(now, code);
    coordinator.disconnect();
    to_coordinator.clear();
    to_worker.clear();
    settle();
  }

  /// Lets everything happen that is due now.
  void settle() {
    for (int turn = 0; turn < 16; ++turn) {
      session.tick(now);
      drain_notices();
      if (!connected) return;
      for (const auto& frame : session.take_frames()) {
        sent.push_back(frame);
        to_coordinator.push(now, frame);
      }
      for (const auto& frame : to_coordinator.take(now)) coordinator.receive(server_now(), frame);
      for (const auto& frame : coordinator.take()) to_worker.push(now, frame);
      const auto arrived = to_worker.take(now);
      for (const auto& frame : arrived) {
        if (!swallow(frame)) session.receive(now, frame);
      }
      if (arrived.empty() && turn > 0) break;
    }
    drain_notices();
  }

  void run_for(std::int64_t ms, const std::function<void()>& each = {}) {
    for (const auto end = now.ms + ms; now.ms < end;) {
      ++now.ms;
      coordinator.tick(server_now());
      settle();
      if (each) each();
    }
  }

  void offer(const std::string& lease) {
    coordinator.offer(server_now(), lease);
    settle();
  }
  /// Offers a lease and lets it become active.
  grant start(const std::string& lease) {
    offer(lease);
    return {protocol::lease_id(lease), coordinator.record(lease).gen};
  }
  /// A frame straight to the session, as if the coordinator had sent it.
  void hear(decltype(protocol::coordinator_frame::body) body) {
    session.receive(now, {.frame_id = 1, .body = std::move(body)});
    settle();
  }

  void finish(const grant& what, protocol::outcome how = protocol::outcome::success) {
    running.erase(what);
    session.finish(now, what, how, "done", false);
    settle();
  }

  /// Frames about leases that the worker sent, by kind.
  [[nodiscard]] std::vector<protocol::lease_frame> sent_of(protocol::event_kind kind) const {
    std::vector<protocol::lease_frame> found;
    for (const auto& frame : sent) {
      const auto* about = std::get_if<protocol::lease_frame>(&frame.body);
      if (about != nullptr && about->what.kind == kind) found.push_back(*about);
    }
    return found;
  }
  [[nodiscard]] std::int64_t starts_of(const grant& what) const {
    const auto at = starts.find(what);
    return at == starts.end() ? 0 : at->second;
  }

  local_time now{1000};
  bool connected = false;
  fake_coordinator coordinator;
  client::worker_session session;
  client::chaos_channel<protocol::worker_frame> to_coordinator;
  client::chaos_channel<protocol::coordinator_frame> to_worker;
  /// Frames for which it says true never reach the worker.
  std::function<bool(const protocol::coordinator_frame&)> swallow = [](const auto&) {
    return false;
  };

  std::vector<protocol::worker_frame> sent;
  std::map<grant, std::int64_t> starts;
  std::map<grant, local_time> deadlines;
  std::set<grant> running;  ///< started, and not told to stop
  std::map<grant, client::lost_reason> lost;
  std::set<grant> cancelled;
  std::map<grant, client::job_closed> closed;
  std::vector<client::over_reason> over;

 private:
  void drain_notices() {
    for (const auto& notice : session.take_notices()) {
      std::visit([&](const auto& n) { note(n); }, notice);
    }
  }
  void note(const client::job_start& n) {
    ++starts[n.what];
    deadlines[n.what] = n.deadline;
    running.insert(n.what);
  }
  void note(const client::job_deadline& n) { deadlines[n.what] = n.deadline; }
  void note(const client::job_cancel& n) { cancelled.insert(n.what); }
  void note(const client::job_lost& n) {
    lost[n.what] = n.why;
    running.erase(n.what);
  }
  void note(const client::job_closed& n) { closed.insert_or_assign(n.what, n); }
  void note(const client::session_ready&) {}
  void note(const client::session_drain&) {}
  void note(const client::session_over& n) { over.push_back(n.why); }
};

}  // namespace leasehold::tests
