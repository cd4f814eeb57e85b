#include "leasehold/client/worker_session.hpp"

#include <utility>

#include "session_core.hpp"

namespace leasehold::client {

std::string_view word(lost_reason why) noexcept {
  switch (why) {
    case lost_reason::expired:
      return "expired";
    case lost_reason::revoked:
      return "revoked";
    case lost_reason::conflict:
      return "conflict";
    case lost_reason::settled:
      return "settled";
    case lost_reason::local_deadline:
      return "local_deadline";
    case lost_reason::superseded:
      return "superseded";
  }
  return "";
}

std::string_view word(over_reason why) noexcept {
  switch (why) {
    case over_reason::silent:
      return "silent";
    case over_reason::no_welcome:
      return "no_welcome";
    case over_reason::moved:
      return "moved";
    case over_reason::goodbye:
      return "goodbye";
    case over_reason::superseded:
      return "superseded";
  }
  return "";
}

worker_session::worker_session(session_options options)
    : core_(std::make_unique<core>(std::move(options))) {}
worker_session::~worker_session() = default;
worker_session::worker_session(worker_session&&) noexcept = default;
worker_session& worker_session::operator=(worker_session&&) noexcept = default;

void worker_session::open(local_time now) { core_->open(now); }
void worker_session::close(local_time now, std::uint16_t code) { core_->close(now, code); }
void worker_session::receive(local_time now, const protocol::coordinator_frame& frame) {
  core_->receive(now, frame);
}
void worker_session::tick(local_time now) { core_->tick(now); }
std::optional<local_time> worker_session::next_tick() const { return core_->next_tick(); }

void worker_session::progress(local_time now, const grant& what, const std::string& value) {
  core_->progress(now, what, value);
}
void worker_session::register_process(local_time now, const grant& what,
                                      const protocol::process_handle& process) {
  core_->register_process(now, what, process);
}
void worker_session::finish(local_time now, const grant& what, protocol::outcome how,
                            const std::string& detail, bool retryable) {
  core_->finish(now, what, how, detail, retryable);
}
void worker_session::release(local_time now, const grant& what) {
  core_->finish(now, what, protocol::outcome::none, "handed back", true);
}
void worker_session::drain(local_time now) { core_->drain(now); }
void worker_session::goodbye(local_time now) { core_->goodbye(now); }

std::vector<protocol::worker_frame> worker_session::take_frames() { return core_->take_frames(); }
std::vector<notice> worker_session::take_notices() { return core_->take_notices(); }
std::size_t worker_session::running() const { return core_->running(); }
std::size_t worker_session::grants() const { return core_->grants(); }
std::size_t worker_session::unanswered() const { return core_->unanswered(); }
bool worker_session::ready() const { return core_->ready(); }
bool worker_session::stopped() const { return core_->stopped(); }

}  // namespace leasehold::client
