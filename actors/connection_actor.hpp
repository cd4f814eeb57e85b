// The actor of one worker connection: who speaks, whether it may, which frames belong to which
// lease, how many are in flight. It judges no frame and extends nothing.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actors/lease_name.hpp"
#include "leasehold/actors/messages.hpp"

namespace leasehold::actors {

class connection_actor final : public coordinator_actor {
 public:
  connection_actor(caf::actor_config& config, context_ptr context, options_ptr options,
                   session_id epoch, principal who, std::shared_ptr<outbound> sink);

 protected:
  actor_behavior make_behavior() override;
  void on_exit() override;
  void broken(const std::exception_ptr& what) override;

 private:
  enum class phase : std::uint8_t { before_hello, resuming, open, leaving, closed };
  struct queue_use {
    protocol::labels has;
    protocol::sequence sequence;
    std::int64_t slots = 0;
    bool told = false;  ///< the queue knows this session
  };
  struct held_lease {
    protocol::generation gen;
    const queue_use* queue = nullptr;  ///< none: this session's Hello did not name it
  };

  // ---- connection_frames.cpp: what the worker says
  void take(inbound_message& message);
  void take_open(inbound_message& message);
  void greet(protocol::hello& hello, std::int64_t frame_id);
  void take_credit(const protocol::credit& credit, std::int64_t frame_id);
  void take_goodbye(const protocol::goodbye& goodbye, std::int64_t frame_id,
                    inbound_message& message);
  void route(protocol::lease_frame& frame, std::int64_t frame_id);
  void take_acquire(protocol::acquire& wanted, std::int64_t frame_id, protocol::instant ingress);
  void take_stop(const protocol::stop_waiting& stop, std::int64_t frame_id);
  void take_process(protocol::process_registration& what, std::int64_t frame_id,
                    protocol::instant ingress);
  /// The lock of a frame, unless it is refused here.
  std::optional<named_lock> name_of(const protocol::lock_name& typed, std::int64_t frame_id);
  /// Waiters of this session are let through to no lock any more.
  void wait_no_more() const;
  void route_event(protocol::event what);
  void hand_over(protocol::instant ingress);
  void refuse(std::int64_t frame_id, protocol::reason why, const protocol::lease_id& lease = {});

  // ---- connection_actor.cpp: the session's life, and what the coordinator says
  void claimed();
  void resumed(leases_resumed& message);
  void welcome();
  void send_out(outbound_frames& message);
  void follow(const protocol::coordinator_frame& frame);
  void note_held(const protocol::lease_standing& standing, const std::string& queue);
  void withdraw(const protocol::offer& offer);
  void answered(std::int64_t frames);
  void in_flight(std::int64_t by);
  void beat();
  void tell_queues();
  void tell_queue(const std::string& queue, queue_use& use);
  void leave_queues();
  void close(protocol::close_code code, std::string_view why);
  void socket_gone();
  void done_if_forgotten();

  context_ptr context_;
  options_ptr options_;
  session_id epoch_;
  principal who_;
  std::shared_ptr<outbound> sink_;
  place self_;
  session_ptr session_;  ///< from Hello on
  worker_view view_;
  phase phase_ = phase::before_hello;
  bool draining_ = false;
  std::deque<std::int64_t> stopped_;  ///< Acquire frames that wait no more, the newest last
  bool superseded_ = false;

  std::vector<protocol::running_lease> running_;  ///< of Hello, until the shards have answered
  std::size_t shards_left_ = 0;
  protocol::welcome welcome_;
  std::vector<inbound_message> early_;       ///< came between Hello and Welcome
  std::vector<fence_passing> early_fences_;  ///< wait behind them

  std::map<std::string, queue_use> queues_;  ///< as Hello named them; none leaves
  std::map<lease_name, held_lease, std::less<>> held_;
  std::size_t forgotten_left_ = 0;
  std::vector<shard_frames> outgoing_;  ///< by thread, of the message that is being taken
  std::vector<protocol::coordinator_frame> refusals_;

  std::int64_t next_frame_id_ = 1;
  std::int64_t in_flight_ = 0;
  bool paused_ = false;
  int silent_beats_ = 0;  ///< since something was read
  protocol::instant last_sent_;
};

}  // namespace leasehold::actors
