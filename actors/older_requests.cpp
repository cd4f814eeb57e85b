#include "actors/older_requests.hpp"

#include <algorithm>

namespace leasehold::actors {

void older_requests::take_log(std::uint64_t lease, const protocol::record& state,
                              std::span<const protocol::past_request> found,
                              protocol::instant now) {
  drop_old(now);
  unread_.erase(lease);
  for (const auto& each : found) {
    const auto& id = each.what.id;
    const bool in_record =
        std::ranges::any_of(state.requests, [&](const auto& done) { return done.id == id; });
    const key at{lease, id};
    if (!in_record && known_.try_emplace(at, noted{each.what, each.at + kept}).second) {
      in_order_.push_back(at);
    }
  }
}

void older_requests::note(std::uint64_t lease, const protocol::record& before,
                          const protocol::record& after, protocol::instant now) {
  if (before.requests.size() < protocol::remembered_requests) return;
  drop_old(now);
  for (const auto& each : before.requests) {
    if (after.requests.size() > 0 && each.id == after.requests.begin()->id) return;
    const key at{lease, each.id};
    if (known_.insert_or_assign(at, noted{each, now + kept}).second) in_order_.push_back(at);
  }
}

const protocol::remembered_request* older_requests::find(std::uint64_t lease,
                                                         const protocol::request_id& id,
                                                         protocol::instant now) {
  if (known_.empty() || id.empty()) return nullptr;
  drop_old(now);
  const auto found = known_.find({lease, id});
  return found == known_.end() ? nullptr : &found->second.what;
}

void older_requests::drop_old(protocol::instant now) {
  if (now >= log_until_) unread_.clear();
  while (!in_order_.empty()) {
    const auto oldest = known_.find(in_order_.front());
    if (known_.size() < most && oldest->second.until > now) return;
    known_.erase(oldest);
    in_order_.pop_front();
  }
}

}  // namespace leasehold::actors
