// An actor for what there are hundreds of thousands of: a mailbox and one message function on CAF's
// smallest actor. caf::event_based_actor is six times as large, for streams, requests, timeouts and
// changing behaviours that such an actor has no use for. Like caf_compat.hpp this file and its .cpp
// are of one version of CAF (0.17).
#pragma once

#include <caf/intrusive/lifo_inbox.hpp>
#include <caf/local_actor.hpp>
#include <caf/mailbox_element.hpp>
#include <caf/resumable.hpp>
#include <cstddef>
#include <utility>

#include "leasehold/actors/caf_compat.hpp"

namespace leasehold::actors {

using message_content = caf::type_erased_tuple;

/// The one value that a message consists of, if it is a `Message`; else null. The receiver may
/// change it: a message that others see, too, is copied first.
template <class Message>
[[nodiscard]] Message* sole(message_content& what) {
  if (what.size() != 1 || !what.match_element<Message>(0)) return nullptr;
  return &what.get_mutable_as<Message>(0);
}

/// To the sender of the message that a lean actor threw at: it has ended, and answers nothing more.
struct lean_actor_failed {};

/// Runs on any scheduler of CAF, as coordinator_actor does, and ends as that does: when it is asked
/// to, or by an exception that leaves receive(). It takes its messages in the order in which they
/// came, whatever their priority. A request is refused with an error at once. It cannot be spawned
/// as detached.
class lean_actor : public caf::local_actor, public caf::resumable {
 public:
  using behavior_type = caf::behavior;  ///< its handle is an actor_handle

  explicit lean_actor(caf::actor_config& config) : caf::local_actor(config) {}

  using caf::local_actor::enqueue;
  void enqueue(caf::mailbox_element_ptr what, caf::execution_unit* on) override;
  void launch(caf::execution_unit* on, bool lazy, bool hide) override;
  bool cleanup(caf::error&& why, caf::execution_unit* on) override;
  void on_destroy() override;

  // subtype() stays `unspecified`: of a `scheduled_actor` CAF takes it for granted that it is a
  // caf::scheduled_actor.
  resume_result resume(caf::execution_unit* on, std::size_t most) override;
  void intrusive_ptr_add_ref_impl() override;
  void intrusive_ptr_release_impl() override;

 protected:
  /// Takes one message, or passes over one that it does not know.
  virtual void receive(message_content& what) = 0;

  /// Within receive(): sends to whoever sent the message, if it names its sender.
  template <class Message>
  void answer(Message&& what) {
    const auto& to = current_sender();
    if (!to) return;
    to->enqueue(
        caf::make_mailbox_element(nullptr, caf::make_message_id(), {}, std::forward<Message>(what)),
        context());
  }

 private:
  struct inbox_policy {
    using mapped_type = caf::mailbox_element;
    using unique_pointer = caf::mailbox_element_ptr;
  };

  void schedule(caf::execution_unit* on);
  /// Why the actor ends with this message; no error: it goes on.
  caf::error take(caf::mailbox_element& what);
  /// Whether there is a message to take.
  bool fetch();
  void drop_first();
  resume_result run(std::size_t most);

  // Newest first. What was fetched from it hangs on current_element_, oldest first; the first of
  // these is the one that is being taken.
  caf::intrusive::lifo_inbox<inbox_policy> inbox_;
};

}  // namespace leasehold::actors

LEASEHOLD_MESSAGE(leasehold::actors::lean_actor_failed)
