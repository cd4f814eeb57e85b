#include "src/asio_scheduler.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <caf/group.hpp>
#include <caf/mailbox_element.hpp>
#include <caf/resumable.hpp>
#include <utility>

namespace leasehold::server {

loop_config::loop_config(boost::asio::io_context& loop, turn_limits limits)
    : loop_(loop), limits_(limits) {
  load<asio_scheduler>();
}

// ---- asio_actor_clock
// ----------------------------------------------------------------------------

void asio_actor_clock::set_ordinary_timeout(time_point when, caf::abstract_actor* who,
                                            caf::atom_value what, std::uint64_t number) {
  simple::set_ordinary_timeout(when, who, what, number);
  arm();
}

void asio_actor_clock::set_multi_timeout(time_point when, caf::abstract_actor* who,
                                         caf::atom_value what, std::uint64_t number) {
  simple::set_multi_timeout(when, who, what, number);
  arm();
}

void asio_actor_clock::set_request_timeout(time_point when, caf::abstract_actor* who,
                                           caf::message_id request) {
  simple::set_request_timeout(when, who, request);
  arm();
}

void asio_actor_clock::schedule_message(time_point when, caf::strong_actor_ptr to,
                                        caf::mailbox_element_ptr content) {
  simple::schedule_message(when, std::move(to), std::move(content));
  arm();
}

void asio_actor_clock::schedule_message(time_point when, caf::group to, caf::strong_actor_ptr from,
                                        caf::message content) {
  simple::schedule_message(when, std::move(to), std::move(from), std::move(content));
  arm();
}

void asio_actor_clock::close() {
  cancel_all();
  timer_.cancel();
  armed_ = false;
}

void asio_actor_clock::arm() {
  if (schedule().empty()) return;
  const time_point due = schedule().begin()->first;
  if (armed_ && armed_for_ <= due) return;
  armed_ = true;
  armed_for_ = due;
  timer_.expires_at(due);
  timer_.async_wait([this](const boost::system::error_code& cancelled) {
    if (cancelled) return;
    armed_ = false;
    trigger_expired_timeouts();
    arm();
  });
}

// ---- asio_scheduler
// ------------------------------------------------------------------------------

asio_scheduler::asio_scheduler(caf::actor_system& system)
    : abstract_coordinator(system),
      loop_(static_cast<const loop_config&>(system.config()).loop()),
      limits_(static_cast<const loop_config&>(system.config()).limits()),
      thread_(std::this_thread::get_id()),
      unit_(system, *this),
      clock_(loop_) {}

asio_scheduler::~asio_scheduler() {
  for (caf::resumable* left : ready_) cleanup_and_release(left);
}

caf::actor_system::module* asio_scheduler::make(caf::actor_system& system,
                                                caf::detail::type_list<>) {
  return new asio_scheduler(system);  // CAF takes ownership
}

void asio_scheduler::stop() {
  while (!ready_.empty()) run_front();
  clock_.close();
}

void asio_scheduler::enqueue(caf::resumable* what) {
  if (std::this_thread::get_id() == thread_) {
    append(what);
  } else {
    boost::asio::post(loop_, [this, what] { append(what); });
  }
}

void asio_scheduler::append(caf::resumable* what) {
  ready_.push_back(what);
  schedule_turn();
}

void asio_scheduler::schedule_turn() {
  if (turn_scheduled_) return;
  turn_scheduled_ = true;
  boost::asio::post(loop_, [this] { take_turn(); });
}

void asio_scheduler::take_turn() {
  turn_scheduled_ = false;
  // What is woken during the turn waits for the next one: sockets come in between.
  for (std::size_t left = std::min(ready_.size(), limits_.actors); left > 0; --left) run_front();
  if (!ready_.empty()) schedule_turn();
}

void asio_scheduler::run_front() {
  caf::resumable* const what = ready_.front();
  ready_.pop_front();
  const auto outcome = what->resume(&unit_, limits_.messages_per_actor);
  if (outcome == caf::resumable::resume_later) {
    ready_.push_back(what);
  } else {
    caf::intrusive_ptr_release(what);
  }
}

}  // namespace leasehold::server
