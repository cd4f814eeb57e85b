#include "src/store/open_store.hpp"

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "src/store/postgres_epoch.hpp"
#include "src/store/postgres_store.hpp"
#include "src/store/sqlite_store.hpp"
#include "src/store/store_facts.hpp"

namespace leasehold::storage {

namespace {

using actors::store_error;
using std::chrono::milliseconds;
using steady = std::chrono::steady_clock;

store_error taken_by(const epoch_state& other, const store_options& how) {
  return {store_error::kind::taken, shown(how.place) + " is served by another coordinator" +
                                        (other.address.empty() ? "" : ", at " + other.address) +
                                        "; stop it first, or name another database"};
}

/// The row once it may be taken: released, or not renewed for a term by this machine's monotonic
/// clock.
actors::store_result<epoch_state> wait_until_free(postgres_epoch& row, const store_options& how) {
  const auto first = row.read();
  const auto free_at = steady::now() + how.term;
  while (true) {
    auto now = row.read();
    const auto* state = std::get_if<epoch_state>(&now);
    if (state == nullptr || std::holds_alternative<store_error>(first)) return now;
    if (state->released) return now;
    if (*state != std::get<epoch_state>(first)) return taken_by(*state, how);
    if (steady::now() >= free_at) return now;
    std::this_thread::sleep_for(how.term / 10);
  }
}

actors::store_result<epoch_state> take_free_epoch(postgres_epoch& row, const std::string& owner,
                                                  const store_options& how) {
  auto free = wait_until_free(row, how);
  if (std::holds_alternative<store_error>(free)) return free;
  auto taken = row.take(std::get<epoch_state>(free), owner, how.address);
  if (auto* fault = std::get_if<store_error>(&taken)) return *fault;
  if (const auto& state = std::get<std::optional<epoch_state>>(taken)) return *state;
  auto now = row.read();
  if (std::holds_alternative<store_error>(now)) return now;
  return taken_by(std::get<epoch_state>(now), how);
}

/// Renews the epoch several times a term on a thread of its own, and releases it at the end.
class kept_epoch {
 public:
  kept_epoch(postgres_epoch row, std::int64_t epoch, milliseconds term)
      : row_(std::move(row)), epoch_(epoch), pause_(term / 5), thread_([this] { run(); }) {}
  ~kept_epoch() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_one();
    thread_.join();
    row_.release(epoch_);  // should it fail, the next coordinator waits for a term
  }
  kept_epoch(const kept_epoch&) = delete;
  kept_epoch& operator=(const kept_epoch&) = delete;

 private:
  void run() {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, pause_, [this] { return stopping_; })) {
      lock.unlock();
      // A renewal that fails is followed by another; commits find out whether the epoch moved.
      row_.renew(epoch_);
      lock.lock();
    }
  }

  postgres_epoch row_;
  std::int64_t epoch_;
  milliseconds pause_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::thread thread_;
};

/// Takes the epoch, which the store then keeps.
std::optional<store_error> take_for(postgres_options& options, const store_options& how) {
  options.access.owner = new_owner();
  auto opened = postgres_epoch::open(options.access, how.shards);
  if (auto* fault = std::get_if<store_error>(&opened)) return *fault;
  auto& row = std::get<postgres_epoch>(opened);
  auto taken = take_free_epoch(row, options.access.owner, how);
  if (auto* fault = std::get_if<store_error>(&taken)) return *fault;
  options.epoch = std::get<epoch_state>(taken).epoch;
  options.held = std::make_shared<kept_epoch>(std::move(row), options.epoch, how.term);
  return std::nullopt;
}

actors::store_result<std::unique_ptr<actors::store>> open_place(const postgres_place& place,
                                                                const store_options& how) {
  postgres_options options;
  options.access.url = place.url;
  options.shards = how.shards;
  options.restored_backup = how.restored_backup;
  options.on_damage = how.on_damage;
  options.on_unsafe = how.on_unsafe;
  options.now = how.now;
  if (how.epoch) {
    options.access.owner = how.epoch->owner;
    options.epoch = how.epoch->epoch;
  } else if (auto fault = take_for(options, how)) {
    return *fault;
  }
  return open_postgres_store(options);
}

actors::store_result<std::unique_ptr<actors::store>> open_place(const sqlite_place& place,
                                                                const store_options& how) {
  return open_sqlite_store({.directory = place.directory,
                            .shards = how.shards,
                            .restored_backup = how.restored_backup,
                            .on_damage = how.on_damage,
                            .on_unguarded = how.on_unsafe,
                            .now = how.now});
}

}  // namespace

actors::store_result<std::unique_ptr<actors::store>> open_store(const store_options& how) {
  return std::visit([&how](const auto& place) { return open_place(place, how); }, how.place);
}

std::string new_owner() { return new_store_id(); }

}  // namespace leasehold::storage
