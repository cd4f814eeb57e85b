// One lease in a wanted state on a live coordinator, and two workers that speak about it.
#pragma once

#include <string>

#include "stream_peer.hpp"

namespace leasehold::e2e {

/// The server and the sessions that all cases share; each case has a lease of its own.
struct rule_world {
  explicit rule_world(int threads);

  live_server server;
  stream_peer worker;    ///< gets every offer
  stream_peer other;     ///< another worker of the tenant
  stream_peer stranger;  ///< a worker of another tenant
};

class rule_scene {
 public:
  rule_scene(rule_world& world, std::string lease) : world_(world), lease_(std::move(lease)) {}

  // ---- the lease is brought into a state by what a worker, a client or an operator can do; terms
  // are an hour where the policy names none.
  void offered(const json::object& policy = {});
  void active(const json::object& policy = {});
  void declined();
  void released();
  void retrying();
  void completed();
  void expired();
  /// Revoked while it was active.
  void revoked();
  void cancel_requested(const json::object& policy = {});
  /// The first generation handed back, the second one active.
  void second_active();
  /// The first generation revoked and unproven, the second one active.
  void second_active_first_unproven();
  /// A cancel was asked for and generation 1 is unproven.
  void unresolved(const json::object& policy = {});
  /// The same with generations 1 and 2.
  void unresolved_twice();
  /// An ownership conflict is open.
  void frozen();

  /// Returns once the coordinator's clock is past the activation.
  void let_time_pass();
  void operate(const std::string& what, const json::object& body = {});

  // ---- frames about it, with generation 1 where none is named
  [[nodiscard]] protocol::lease_frame frame(protocol::event_kind kind, std::int64_t gen = 1,
                                            std::int64_t seq = 0) const;
  [[nodiscard]] protocol::lease_frame renew(std::int64_t seq, std::int64_t gen = 1) const;
  [[nodiscard]] protocol::lease_frame progress(std::int64_t seq, std::string value,
                                               std::int64_t gen = 1) const;
  [[nodiscard]] protocol::lease_frame result(protocol::outcome how, std::string detail = {},
                                             bool retryable = false, std::int64_t gen = 1) const;
  [[nodiscard]] protocol::lease_frame release(std::string request, std::int64_t gen = 1) const;

  // ---- sending
  protocol::frame_verdict tell(protocol::lease_frame f) { return world_.worker.tell(std::move(f)); }
  /// By the other worker, in its own name.
  protocol::frame_verdict tell_as_other(protocol::lease_frame f);
  protocol::frame_verdict tell_as_stranger(protocol::lease_frame f);
  /// Sends what must be accepted before the frame that the case is about.
  void told(protocol::lease_frame f);

  [[nodiscard]] rule_world& world() const { return world_; }
  [[nodiscard]] const std::string& lease() const { return lease_; }

 private:
  void start(std::int64_t gen);

  rule_world& world_;
  std::string lease_;
  protocol::instant acquired_at_;
};

}  // namespace leasehold::e2e
