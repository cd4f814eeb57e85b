// A coordinator for tests of the worker's side: the real rules on one thread and virtual time, one
// worker, no store, no queue.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "leasehold/protocol/frame.hpp"
#include "leasehold/protocol/policy.hpp"
#include "leasehold/protocol/rules.hpp"

namespace leasehold::tests {

class fake_coordinator {
 public:
  protocol::policy policy{.ack_timeout = {2000}, .lease_duration = {3000}, .cancel_grace = {1000}};
  std::string queue = "q";

  // ---- what the test orders
  /// Offers the job to the worker; a new lease if there is none. False: the rules refuse.
  bool offer(protocol::instant now, const std::string& lease);
  void cancel(protocol::instant now, const std::string& lease);
  void revoke(protocol::instant now, const std::string& lease);
  /// Applies deadlines.
  void tick(protocol::instant now);
  /// The session is gone; answers that wait are lost.
  void disconnect();

  // ---- the worker's frames, and the answers to them
  void receive(protocol::instant now, const protocol::worker_frame& frame);
  std::vector<protocol::coordinator_frame> take();

  [[nodiscard]] bool knows(const std::string& lease) const { return leases_.contains(lease); }
  [[nodiscard]] const protocol::record& record(const std::string& lease) const;
  [[nodiscard]] const std::map<std::string, std::int64_t>& credit() const { return credit_; }
  /// Every frame about a lease that was judged, in order.
  std::vector<protocol::event> judged;
  std::int64_t holder_changes = 0;
  /// Sends no Welcome while set.
  bool mute = false;

 private:
  struct entry {
    protocol::record state;
    protocol::row_number row;
  };
  struct collected_row {
    protocol::event_kind kind;
    protocol::verdict answer;
    bool has_input;
    protocol::event input;
    protocol::lease_state state_before;
    protocol::lease_state state;
    protocol::generation gen;
    protocol::holder held_by;
    bool derived;
  };
  class collector;

  void run(protocol::instant now, entry& e, const protocol::event& what);
  void tell(protocol::instant now, entry& e, const std::vector<collected_row>& rows);
  void judge(protocol::instant now, const protocol::lease_frame& frame, std::int64_t frame_id);
  void answer(const entry* e, const protocol::event& input, const protocol::verdict& given);
  void welcome(protocol::instant now, const protocol::hello& hello);
  void send(decltype(protocol::coordinator_frame::body) body);
  [[nodiscard]] protocol::lease_standing standing(const entry& e) const;

  std::map<std::string, entry> leases_;
  std::map<std::string, std::int64_t> credit_;
  std::vector<protocol::coordinator_frame> out_;
  protocol::holder holder_;
  std::int64_t rows_ = 0;
  std::int64_t epoch_ = 0;
  std::int64_t frame_id_ = 0;
  std::map<std::string, std::int64_t> credit_sequence_;
  bool open_ = false;
};

}  // namespace leasehold::tests
