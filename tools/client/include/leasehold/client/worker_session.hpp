// The worker's side of the stream as a pure state machine: frames, local time and the program's
// calls go in, frames to send and notices come out. No socket, thread or clock of its own; its
// randomness comes from the seed. The numbers [R1] to [R9] are those of the rules for the worker's
// side.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "leasehold/client/notice.hpp"
#include "leasehold/protocol/frame.hpp"

namespace leasehold::client {

struct queue_slots {
  std::string queue;
  std::int64_t slots = 1;  ///< how many jobs of the queue may run here at once
  protocol::labels labels;
};

/// Leases of one process in all: its Hello lists them and must fit into one message.
inline constexpr std::int64_t most_slots = 400;

struct session_options {
  std::string incarnation;  ///< 32 hex digits, made once per process
  std::string client_name = "leasehold";
  std::string client_version;
  std::vector<queue_slots> queues;
  std::uint64_t jitter_seed = 0;
  protocol::duration resend_first{500};  ///< an unanswered frame is sent again after this,
  protocol::duration resend_most{5000};  ///< doubled each time up to this
  protocol::duration welcome_timeout{3000};
  /// The session is over when a frame went out and nothing at all was heard for so long since; 0:
  /// only missing heartbeats end it.
  protocol::duration answer_silence{0};
  protocol::duration credit_interval{10000};
  protocol::duration progress_interval{100};  ///< between two progress frames of one grant
  std::size_t most_in_flight = 256;           ///< frames sent and unanswered
  std::size_t most_early = 256;               ///< frames kept that overtook Welcome
  std::size_t most_remembered = 16384;        ///< leases whose newest generation is remembered
};

/// How long before its end authority is given up: a tenth of the term, at least 100 ms [R4].
constexpr protocol::duration safety_margin(protocol::duration term) noexcept {
  return {term.ms / 10 > 100 ? term.ms / 10 : 100};
}

class worker_session {
 public:
  explicit worker_session(session_options options);
  ~worker_session();
  worker_session(worker_session&&) noexcept;
  worker_session& operator=(worker_session&&) noexcept;

  // ---- the socket
  /// A socket is open: Hello goes out.
  void open(local_time now);
  /// The socket is gone or no longer listened to. `code`: its close code, or 0. 4001 stops for
  /// good.
  void close(local_time now, std::uint16_t code);
  void receive(local_time now, const protocol::coordinator_frame& frame);
  /// Does what is due. Call it at next_tick() at the latest, and after any other call.
  void tick(local_time now);
  [[nodiscard]] std::optional<local_time> next_tick() const;

  // ---- the program. Calls about a grant that is over, or was never started, are passed over.
  /// Tells how far the work is; cut to 1 KiB of valid UTF-8. Only the newest value that could not
  /// be sent yet is kept.
  void progress(local_time now, const grant& what, const std::string& value);
  /// Names the process that works on the grant; said until it is answered.
  void register_process(local_time now, const grant& what, const protocol::process_handle& process);
  /// The work has ended; the detail is cut to 4 KiB of valid UTF-8. Outcome `cancelled` without a
  /// cancel hands the grant back instead.
  void finish(local_time now, const grant& what, protocol::outcome how, const std::string& detail,
              bool retryable);
  /// The work has stopped and is handed back for somebody else.
  void release(local_time now, const grant& what);
  /// Takes no more offers, for good.
  void drain(local_time now);
  /// Hands back what was not started and says goodbye. The work that ran must have ended before.
  void goodbye(local_time now);

  // ---- what came of it
  [[nodiscard]] std::vector<protocol::worker_frame> take_frames();
  [[nodiscard]] std::vector<notice> take_notices();
  /// Grants whose work runs here, or whose ACK or end is not answered yet.
  [[nodiscard]] std::size_t running() const;
  [[nodiscard]] std::size_t grants() const;
  /// Frames that wait to be sent or for their final answer.
  [[nodiscard]] std::size_t unanswered() const;
  [[nodiscard]] bool ready() const;    ///< welcomed
  [[nodiscard]] bool stopped() const;  ///< superseded: never to be opened again

 private:
  class core;
  std::unique_ptr<core> core_;
};

}  // namespace leasehold::client
