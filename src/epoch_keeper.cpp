#include "src/epoch_keeper.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace leasehold::server {
namespace {

using actors::store_error;

/// A wait does not count suspend, so it is never longer than this.
constexpr std::int64_t longest_nap_ms = 100;

std::chrono::milliseconds nap_until(std::int64_t at_ms, std::int64_t now_ms) {
  return std::chrono::milliseconds{std::clamp<std::int64_t>(at_ms - now_ms, 1, longest_nap_ms)};
}

}  // namespace

epoch_keeper::epoch_keeper(epoch_keeper_options how)
    : how_(std::move(how)), lease_(how_.mine, how_.boottime_ms()) {}

epoch_keeper::~epoch_keeper() { stop(); }

void epoch_keeper::start() {
  asking_ = std::jthread([this](const std::stop_token& enough) { keep_asking(enough); });
  watching_ = std::jthread([this](const std::stop_token& enough) { keep_watching(enough); });
}

void epoch_keeper::stop() {
  for (auto* each : {&asking_, &watching_}) each->request_stop();
  for (auto* each : {&asking_, &watching_}) {
    if (each->joinable()) each->join();
  }
}

void epoch_keeper::release() {
  stop();
  how_.role->end();
  if (lease_.holds() && lease_.row()) static_cast<void>(how_.store->release(*lease_.row()));
}

void epoch_keeper::depose(const std::string& why) {
  std::unique_lock lock(mutex_);
  lease_.depose();
  end_if_lost(lock, why);
}

void epoch_keeper::keep_asking(const std::stop_token& enough) {
  std::unique_lock lock(mutex_);
  while (!enough.stop_requested()) {
    const auto [what, at_ms] = lease_.next();
    if (what == epoch_step::none) return;
    const std::int64_t now_ms = how_.boottime_ms();
    if (at_ms > now_ms) {
      changed_.wait_for(lock, enough, nap_until(at_ms, now_ms), [] { return false; });
      continue;
    }
    lock.unlock();
    take_step(what);
    lock.lock();
  }
}

/// The lease may end while the other thread waits for the store.
void epoch_keeper::keep_watching(const std::stop_token& enough) {
  std::unique_lock lock(mutex_);
  while (!enough.stop_requested()) {
    const std::int64_t now_ms = how_.boottime_ms();
    lease_.pass(now_ms);
    if (lease_.lost()) {
      std::string why = "its lease of the epoch was not renewed in time";
      if (!last_fault_.empty()) why += ": " + last_fault_;
      return end_if_lost(lock, why);
    }
    const std::int64_t at_ms = lease_.holds() ? lease_.until_ms() : now_ms + longest_nap_ms;
    changed_.wait_for(lock, enough, nap_until(at_ms, now_ms), [] { return false; });
  }
}

void epoch_keeper::take_step(epoch_step what) {
  switch (what) {
    case epoch_step::look:
      return look();
    case epoch_step::take:
      return take();
    case epoch_step::renew:
      return renew();
    case epoch_step::none:
      return;
  }
}

void epoch_keeper::look() {
  auto found = how_.store->read();
  if (const auto* why = std::get_if<store_error>(&found)) return fail(*why);
  {
    const std::lock_guard lock(mutex_);
    lease_.looked(how_.boottime_ms(), std::get<std::optional<epoch_row>>(found));
  }
  tell_row();
}

void epoch_keeper::take() {
  // Only this thread changes the row that was seen.
  const auto seen = lease_.row();
  const std::int64_t sent_ms = how_.boottime_ms();
  auto won = how_.store->take(seen, how_.mine);
  if (const auto* why = std::get_if<store_error>(&won)) return fail(*why);
  const auto& row = std::get<std::optional<epoch_row>>(won);
  std::unique_lock lock(mutex_);
  lease_.took(sent_ms, how_.boottime_ms(), row);
  if (!row) return;
  // The store may have been slow: a lease that is over already is never served.
  lease_.pass(how_.boottime_ms());
  if (lease_.lost()) return end_if_lost(lock, "the store was too slow to give it the epoch");
  const bool over = seen && !seen->released && seen->by.holder != how_.mine.holder;
  how_.role->take(row->epoch, how_.mine.active, over);
  how_.role->extend(lease_.until_ms());
  lock.unlock();
  changed_.notify_all();
  if (how_.on_taken) how_.on_taken(row->epoch, over);
}

void epoch_keeper::renew() {
  const auto mine = lease_.row();
  const std::int64_t sent_ms = how_.boottime_ms();
  auto still = how_.store->renew(*mine);
  if (const auto* why = std::get_if<store_error>(&still)) return fail(*why);
  std::unique_lock lock(mutex_);
  lease_.pass(how_.boottime_ms());
  lease_.renewed(sent_ms, std::get<std::optional<epoch_row>>(still));
  if (lease_.lost()) return end_if_lost(lock, "another coordinator has taken the store over");
  last_fault_.clear();
  if (lease_.holds()) how_.role->extend(lease_.until_ms());
}

void epoch_keeper::fail(const store_error& why) {
  bool holds = false;
  {
    const std::lock_guard lock(mutex_);
    lease_.failed(how_.boottime_ms());
    holds = lease_.holds();
    if (holds) last_fault_ = why.sentence;
  }
  // The active coordinator's own commits say what is wrong.
  if (holds || !how_.on_trouble) return;
  in_trouble_ = true;
  how_.on_trouble(&why);
}

void epoch_keeper::tell_row() {
  if (std::exchange(in_trouble_, false) && how_.on_trouble) how_.on_trouble(nullptr);
  const auto row = lease_.row();
  if (!row || row->by.holder == how_.mine.holder) return;
  how_.role->watch(row->epoch, row->released ? "" : row->by.active);
  if (row->released) return;
  const bool is_known = told_ && told_->epoch == row->epoch && told_->by.holder == row->by.holder;
  told_ = row;
  if (!is_known && how_.on_watched) how_.on_watched(*row);
}

void epoch_keeper::end_if_lost(std::unique_lock<std::mutex>& lock, const std::string& why) {
  if (!lease_.lost()) return;
  how_.role->end();
  const bool first = !std::exchange(is_told_, true);
  const std::int64_t epoch = lease_.row() ? lease_.row()->epoch : 0;
  lock.unlock();
  if (first && how_.on_deposed) how_.on_deposed({why, epoch});
}

}  // namespace leasehold::server
