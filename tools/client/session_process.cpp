// The process that works on a grant is named until the coordinator has answered. It is no event of
// the lease: it waits behind nothing and keeps nothing waiting.
#include <algorithm>

#include "session_core.hpp"

namespace leasehold::client {

void worker_session::core::register_process(local_time now, const grant& what,
                                            const protocol::process_handle& process) {
  const auto at = held_.find(what);
  if (at == held_.end() || at->second.stage != stage::active) return;
  at->second.process = {process, usual_patience(), now};
  tick_process(now, what, at->second);
}

void worker_session::core::tick_process(local_time now, const grant& what, held& h) {
  if (!h.process || phase_ != phase::open || now < h.process->due) return;
  auto& process = *h.process;
  say(now, protocol::process_registration{what.lease, what.gen, holder_, process.what});
  process.frame_id = sending_.last_frame_id;
  process.epoch = sending_.epoch;
  process.due = now + jitter_.around(process.wait.first);
  process.wait.first =
      std::min(protocol::duration{process.wait.first.ms * 2}, process.wait.most);
}

void worker_session::core::judge_process(local_time now, const protocol::frame_verdict& what) {
  for (auto& [about, h] : held_) {
    if (!h.process || h.process->frame_id != what.answers || h.process->epoch != what.epoch) {
      continue;
    }
    using protocol::reason_class;
    const bool again = what.outcome == reason_class::retryable ||
                       what.outcome == reason_class::unknown_outcome ||
                       what.reason == protocol::reason::session_superseded;
    if (again) {
      h.process->due = now + std::max(h.process->wait.first, what.retry_after);
    } else {
      h.process.reset();
    }
    return;
  }
}

}  // namespace leasehold::client
