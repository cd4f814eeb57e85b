// The state of a worker session; worker_session is its public face.
#pragma once

#include <deque>
#include <map>
#include <utility>

#include "leasehold/client/worker_session.hpp"
#include "outbox.hpp"

namespace leasehold::client {

class worker_session::core {
 public:
  explicit core(session_options options);

  void open(local_time now);
  void close(local_time now, std::uint16_t code);
  void receive(local_time now, const protocol::coordinator_frame& frame);
  void tick(local_time now);
  [[nodiscard]] std::optional<local_time> next_tick() const;

  void progress(local_time now, const grant& what, const std::string& value);
  void register_process(local_time now, const grant& what, const protocol::process_handle& process);
  void finish(local_time now, const grant& what, protocol::outcome how, const std::string& detail,
              bool retryable);
  void drain(local_time now);
  void goodbye(local_time now);

  [[nodiscard]] std::vector<protocol::worker_frame> take_frames() {
    return std::exchange(out_, {});
  }
  [[nodiscard]] std::vector<notice> take_notices() { return std::exchange(notices_, {}); }
  [[nodiscard]] std::size_t running() const;
  [[nodiscard]] std::size_t grants() const { return held_.size(); }
  [[nodiscard]] std::size_t unanswered() const { return outbox_.size(); }
  [[nodiscard]] bool ready() const { return phase_ == phase::open; }
  [[nodiscard]] bool stopped() const { return phase_ == phase::stopped; }

 private:
  enum class phase : std::uint8_t { closed, greeting, open, leaving, stopped };
  enum class stage : std::uint8_t {
    waiting,  ///< offered; the work of the generation before still stops here
    offered,  ///< ACKed, not known to be active
    active,
    lost,   ///< no authority any more; its work stops
    ended,  ///< result or release sent; its final answer is waited for
  };

  /// A grant that this process has to do with.
  struct held {
    protocol::offer facts;  ///< the payload leaves with job_start
    core::stage stage = core::stage::offered;
    protocol::row_number row;
    bool work_runs = false;
    /// When the frame that last extended authority was sent [R4]; 0: its ACK has not been.
    local_time authority_from;
    protocol::instant told_until;  ///< expires_at as last told; 0: not told
    local_time told_deadline;      ///< the deadline of the last job_start or job_deadline
    bool may_renew = true;
    local_time next_renew;
    std::int64_t renew_sequence = 0;
    std::optional<std::string> newest_progress;  ///< not sent yet
    std::int64_t progress_sequence = 0;
    local_time next_progress;
    bool cancel_known = false;
    /// The process that works on it, until the coordinator has answered.
    struct unanswered_process {
      protocol::process_handle what;
      patience wait;
      local_time due;
      std::int64_t frame_id = 0;  ///< as it was said last, in the session of `epoch`
      std::int64_t epoch = 0;
    };
    std::optional<unanswered_process> process;
    bool stamped_again = false;
    protocol::instant last_sent;
  };
  /// The newest that is known of a lease, also when nothing of it is held here [R1, R9].
  struct known_lease {
    protocol::generation gen;
    protocol::row_number row;
    protocol::lease_state state = protocol::lease_state::none;
    bool over_here = false;  ///< this process is through with `gen`
  };
  using held_map = std::map<grant, held>;

  // ---- the coordinator's frames (session_judging.cpp)
  void on(local_time now, const protocol::welcome& what);
  void on(local_time now, const protocol::frame_verdict& what);
  void on(local_time now, const protocol::offer& what);
  void on(local_time now, const protocol::activated& what);
  void on(local_time now, const protocol::cancel_notice& what);
  void on(local_time now, const protocol::lease_lost& what);
  void on(local_time now, const protocol::granted& what);
  void on(local_time now, const protocol::drain& what);
  void on(local_time now, const protocol::server_heartbeat& what);
  void resume(local_time now, const protocol::lease_standing& standing);
  void lost_by(local_time now, const protocol::lost_lease& lost);
  /// Takes in where a lease stands. False: it is old news.
  bool observe(local_time now, const protocol::lease_standing& standing);
  /// True when (gen, row) is not older than what is known; notes it.
  bool note(const protocol::lease_id& lease, protocol::generation gen, protocol::row_number row,
            protocol::lease_state state);
  void lose_older(local_time now, const protocol::lease_id& lease, protocol::generation than);
  void answered_renew(local_time now, const outbox::answered& answer,
                      const protocol::frame_verdict& what);
  void answered_finally(local_time now, const outbox::answered& answer,
                        const protocol::frame_verdict& what);
  void refuse_offer(local_time now, const grant& what, std::string why);

  // ---- the life of a grant (session_grants.cpp)
  void activate(local_time now, const grant& what, held& h);
  void begin_work(local_time now, const grant& what, held& h);
  void cancel(local_time now, const grant& what, held& h);
  void lose(local_time now, held_map::iterator at, lost_reason why);
  void end(local_time now, const grant& what, held& h, protocol::lease_frame closing);
  void ack(local_time now, const grant& what, held& h);
  void ack_waiting(local_time now, const protocol::lease_id& lease);
  void forget(held_map::iterator at);
  [[nodiscard]] local_time deadline_of(const held& h) const;
  void tell_deadline(const grant& what, held& h);
  [[nodiscard]] protocol::lease_frame frame_about(protocol::event_kind kind,
                                                  const grant& what) const;
  [[nodiscard]] patience patience_for(const held& h) const;
  [[nodiscard]] patience usual_patience() const {
    return {options_.resend_first, options_.resend_most};
  }

  void tick_grants(local_time now);
  void tick_renew(local_time now, const grant& what, held& h);
  void tick_progress(local_time now, const grant& what, held& h);
  // ---- the process of a grant (session_process.cpp)
  void tick_process(local_time now, const grant& what, held& h);
  void judge_process(local_time now, const protocol::frame_verdict& what);

  // ---- the session (session_core.cpp)
  void tick_session(local_time now);
  /// When a session that hears nothing is over.
  [[nodiscard]] local_time silent_at() const;
  void flush(local_time now);
  void say(local_time now, decltype(protocol::worker_frame::body) body);
  void give_credit(local_time now);
  [[nodiscard]] std::int64_t slots_of(const queue_slots& queue) const;
  [[nodiscard]] std::int64_t taken(std::string_view queue) const;
  void over(over_reason why);
  void sample_clock(local_time now, protocol::instant server_time);
  void remember(const protocol::lease_id& lease);

  session_options options_;
  jitter jitter_;
  outbox outbox_;
  phase phase_ = phase::closed;
  bool draining_ = false;      ///< by the program, for good
  bool drained_here_ = false;  ///< by this coordinator
  sending_session sending_;
  protocol::holder holder_;
  protocol::duration heartbeat_interval_{10000};
  local_time opened_at_;
  local_time last_heard_;
  std::optional<local_time> asked_since_;  ///< the first frame went out after the last was heard
  local_time clock_sampled_at_;
  local_time leave_by_;  ///< drained: when to go elsewhere at the latest
  std::int64_t credit_sequence_ = 0;
  local_time next_credit_;
  std::map<std::string, std::int64_t, std::less<>> credit_told_;
  std::vector<protocol::coordinator_frame> early_;
  held_map held_;
  std::map<protocol::lease_id, known_lease> known_;
  std::deque<protocol::lease_id> known_order_;
  std::vector<protocol::worker_frame> out_;
  std::vector<notice> notices_;
};

}  // namespace leasehold::client
