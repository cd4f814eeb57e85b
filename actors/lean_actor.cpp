#include "actors/lean_actor.hpp"

#include <caf/scheduler/abstract_coordinator.hpp>
#include <caf/system_messages.hpp>

namespace leasehold::actors {

namespace {

// ThreadSanitizer sees the inbox, which is compiled here, but not how the library passes on an
// actor that goes on in another turn, nor how it counts the references to one.
void let_go(void* who) {
#ifdef LEASEHOLD_TSAN_MAILBOXES
  __tsan_release(who);
#else
  static_cast<void>(who);
#endif
}

void take_over(void* who) {
#ifdef LEASEHOLD_TSAN_MAILBOXES
  __tsan_acquire(who);
#else
  static_cast<void>(who);
#endif
}

void refuse_request(const caf::mailbox_element& what, bool ended, caf::execution_unit* on) {
  if (!what.sender) return;
  const auto why = ended ? caf::sec::request_receiver_down : caf::sec::unexpected_message;
  what.sender->enqueue(nullptr, what.mid.response_id(), caf::make_message(caf::make_error(why)),
                       on);
}

}  // namespace

void lean_actor::enqueue(caf::mailbox_element_ptr what, caf::execution_unit* on) {
  if (what->mid.is_request()) {
    refuse_request(*what, inbox_.closed(), on);
    return;
  }
  // To an actor that has ended the message is dropped.
  if (inbox_.push_front(std::move(what)) == caf::intrusive::inbox_result::unblocked_reader) {
    schedule(on);
  }
}

void lean_actor::schedule(caf::execution_unit* on) {
  intrusive_ptr_add_ref(ctrl());  // the scheduler's; it lets go of it after resume()
  if (on != nullptr) {
    on->exec_later(this);
  } else {
    home_system().scheduler().enqueue(this);
  }
}

void lean_actor::launch(caf::execution_unit* on, bool lazy, bool hide) {
  if (!hide) register_at_system();
  // Messages that came before are a reason to run even a lazy one.
  if (!lazy || !inbox_.try_block()) schedule(on);
}

caf::resumable::resume_result lean_actor::resume(caf::execution_unit* on, std::size_t most) {
  take_over(this);
  if (inbox_.closed()) return done;
  context(on);
  return run(most);
}

caf::resumable::resume_result lean_actor::run(std::size_t most) {
  for (std::size_t taken = 0; taken < most; ++taken) {
    if (!fetch()) break;
    auto why = take(*current_element_);
    drop_first();
    if (!why) continue;
    on_exit();
    cleanup(std::move(why), context());
    let_go(this);
    return done;
  }
  const bool idle = current_element_ == nullptr;
  let_go(this);  // behind try_block() the next turn may have begun on another thread
  return idle && inbox_.try_block() ? awaiting_message : resume_later;
}

bool lean_actor::fetch() {
  if (current_element_ != nullptr) return true;
  for (auto* newest = inbox_.take_head(); newest != nullptr;) {
    auto* const older = caf::intrusive::lifo_inbox<inbox_policy>::promote(newest->next);
    newest->next = current_element_;
    current_element_ = newest;
    newest = older;
  }
  return current_element_ != nullptr;
}

void lean_actor::drop_first() {
  const caf::mailbox_element_ptr first(current_element_);
  current_element_ = caf::intrusive::lifo_inbox<inbox_policy>::promote(first->next);
}

caf::error lean_actor::take(caf::mailbox_element& what) {
  try {
    auto& content = what.content();
    if (content.type_token() == caf::make_type_token<caf::exit_msg>()) {
      auto& leave = content.get_mutable_as<caf::exit_msg>(0);
      unlink_from(leave.source);
      return std::move(leave.reason);
    }
    receive(content);
    return {};
  } catch (...) {
    answer(lean_actor_failed{});
    return caf::exit_reason::unhandled_exception;
  }
}

bool lean_actor::cleanup(caf::error&& why, caf::execution_unit* on) {
  while (current_element_ != nullptr) drop_first();
  if (!inbox_.closed()) inbox_.close();
  return caf::local_actor::cleanup(std::move(why), on);
}

void lean_actor::on_destroy() {
  take_over(this);
  caf::local_actor::on_destroy();
}

void lean_actor::intrusive_ptr_add_ref_impl() { intrusive_ptr_add_ref(ctrl()); }

void lean_actor::intrusive_ptr_release_impl() { intrusive_ptr_release(ctrl()); }

}  // namespace leasehold::actors
