// All that the coordinator knows about one particular version of CAF (0.17), but for
// actors/lean_actor: its headers, how a plain struct becomes a message, and what actors of ours
// have in common. Other files name CAF through the aliases here, so that a later CAF is a change of
// these.
#pragma once

#include <caf/actor.hpp>
#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/behavior.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/exit_reason.hpp>
#include <caf/send.hpp>
#include <exception>
#include <utility>
#ifdef LEASEHOLD_TSAN_MAILBOXES
#include <sanitizer/tsan_interface.h>
#endif

/// Makes a plain struct a message between actors of one process; it is never serialised. Used at
/// global scope, after the struct; the argument holds no comma (name a template by an alias first).
#define LEASEHOLD_MESSAGE(type) CAF_ALLOW_UNSAFE_MESSAGE_TYPE(type)

namespace leasehold::actors {

using actor_handle = caf::actor;
using actor_system = caf::actor_system;
using actor_behavior = caf::behavior;

/// What every actor of ours but a lease has in common. Handles of other actors are strong
/// references: two actors that know each other drop them in on_exit.
///
/// A message that no behaviour takes is dropped without an answer. An exception that leaves a
/// message function ends the actor, after `broken` has been told: no actor goes on with half a
/// change.
class coordinator_actor : public caf::event_based_actor {
 public:
  explicit coordinator_actor(caf::actor_config& config) : caf::event_based_actor(config) {
    set_default_handler(caf::drop);
    set_exception_handler([this](std::exception_ptr& what) {
      broken(what);
      return caf::error{caf::exit_reason::unhandled_exception};
    });
  }

#ifdef LEASEHOLD_TSAN_MAILBOXES
  // ThreadSanitizer sees nothing of what CAF's library does, which is not built with it. On a
  // scheduler of several workers it is told what the mailbox orders: a message before its reader,
  // one turn of an actor before the next.
  using caf::event_based_actor::enqueue;
  void enqueue(caf::mailbox_element_ptr what, caf::execution_unit* on) override {
    __tsan_release(what.get());
    __tsan_release(this);
    caf::event_based_actor::enqueue(std::move(what), on);
  }
  resume_result resume(caf::execution_unit* on, std::size_t most) override {
    __tsan_acquire(this);
    const auto said = caf::event_based_actor::resume(on, most);
    __tsan_release(this);
    return said;
  }
  using caf::event_based_actor::consume;
  caf::invoke_message_result consume(caf::mailbox_element& what) override {
    __tsan_acquire(&what);
    return caf::event_based_actor::consume(what);
  }
#endif

 protected:
  /// Called once, when an exception has ended this actor.
  virtual void broken(const std::exception_ptr&) {}
};

/// Asks an actor to end; it does so after the messages that it already has.
inline void ask_to_exit(const actor_handle& who) {
  caf::anon_send_exit(who, caf::exit_reason::user_shutdown);
}

/// Sends without a sender; from the thread of the receiver's actor system only.
template <class... Parts>
void tell(const actor_handle& who, Parts&&... parts) {
  caf::anon_send(who, std::forward<Parts>(parts)...);
}

/// The same, ahead of what waits in the receiver's mailbox.
template <class... Parts>
void tell_first(const actor_handle& who, Parts&&... parts) {
  caf::anon_send<caf::message_priority::high>(who, std::forward<Parts>(parts)...);
}

}  // namespace leasehold::actors
