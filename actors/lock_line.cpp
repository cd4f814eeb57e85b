#include "actors/lock_line.hpp"

#include <algorithm>

namespace leasehold::actors {

namespace {

bool is_gone(const shard_operation& waiter) { return waiter.gone && waiter.gone(); }

std::pair<session_id, std::int64_t> frame_of(const shard_operation& waiter) {
  return {waiter.session->epoch, waiter.what.frame_id};
}

}  // namespace

void lock_line::add(std::uint64_t number, shard_operation what) {
  if (what.session) by_frame_[frame_of(what)] = number;
  if (!what.what.request.empty()) by_request_.emplace(what.what.request, number);
  waiters_.emplace(number, std::make_shared<shard_operation>(std::move(what)));
}

lock_line::waiter lock_line::take(waiters::iterator at) {
  auto taken = std::move(at->second);
  if (taken->session) by_frame_.erase(frame_of(*taken));
  auto [copy, last] = by_request_.equal_range(taken->what.request);
  copy = std::find_if(copy, last, [&](const auto& each) { return each.second == at->first; });
  if (copy != last) by_request_.erase(copy);
  waiters_.erase(at);
  return taken;
}

lock_line::waiter lock_line::take(std::uint64_t number) {
  const auto at = waiters_.find(number);
  return at == waiters_.end() ? nullptr : take(at);
}

std::uint64_t lock_line::of_frame(session_id session, std::int64_t acquire) const {
  const auto at = by_frame_.find({session, acquire});
  return at == by_frame_.end() ? 0 : at->second;
}

std::vector<lock_line::waiter> lock_line::take_copies(const protocol::request_id& request) {
  std::vector<waiter> taken;
  for (auto at = by_request_.find(request); at != by_request_.end();
       at = by_request_.find(request)) {
    taken.push_back(take(waiters_.find(at->second)));
  }
  return taken;
}

std::vector<lock_line::waiter> lock_line::take_gone(bool everywhere) {
  std::vector<waiter> taken;
  for (auto at = waiters_.begin(); at != waiters_.end();) {
    const auto next = std::next(at);
    if (is_gone(*at->second)) {
      taken.push_back(take(at));
    } else if (!everywhere) {
      break;
    }
    at = next;
  }
  return taken;
}

}  // namespace leasehold::actors
