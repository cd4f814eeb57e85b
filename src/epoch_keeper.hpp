// The threads that keep the epoch of the store, or wait for it: one asks the store, the other sees
// to it that nothing is believed longer than it holds, also while the first waits for an answer.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "src/active_role.hpp"
#include "src/epoch_lease.hpp"

namespace leasehold::server {

/// Why the epoch is not ours any more.
struct deposed {
  std::string sentence;
  std::int64_t epoch = 0;  ///< that was ours
};

struct epoch_keeper_options {
  std::unique_ptr<epoch_store> store;
  epoch_claim mine;
  std::function<std::int64_t()> boottime_ms;
  std::shared_ptr<active_role> role;
  // All are called on threads of the keeper, none with anything locked.
  /// The epoch is ours; `over`: it was taken from somebody who did not release it.
  std::function<void(std::int64_t epoch, bool over)> on_taken;
  /// Once, after the role has ended: nothing may go on.
  std::function<void(const deposed&)> on_deposed;
  /// Another coordinator has the store: it, or its address, is another one than before.
  std::function<void(const epoch_row&)> on_watched;
  /// The store does not answer the standby; null: it does again.
  std::function<void(const actors::store_error*)> on_trouble;
};

class epoch_keeper {
 public:
  explicit epoch_keeper(epoch_keeper_options how);
  /// Stops.
  ~epoch_keeper();
  epoch_keeper(const epoch_keeper&) = delete;
  epoch_keeper& operator=(const epoch_keeper&) = delete;

  void start();
  /// Ends the threads; an epoch that is ours is kept until its term is over. Not on a thread of its
  /// own.
  void stop();
  /// Stops, and gives the epoch back so that the next one takes it at once. Nothing may be written
  /// or answered under it any more. Without effect while it is not ours.
  void release();
  /// Somebody else was told that the epoch has moved. Any thread.
  void depose(const std::string& why);

 private:
  void keep_asking(const std::stop_token& enough);
  void keep_watching(const std::stop_token& enough);
  void take_step(epoch_step what);
  void look();
  void take();
  void renew();
  void fail(const actors::store_error& why);
  void tell_row();
  /// Ends the role once the lease is lost, and says so; `lock` is held and is given up.
  void end_if_lost(std::unique_lock<std::mutex>& lock, const std::string& why);

  epoch_keeper_options how_;
  std::mutex mutex_;  // guards the lease
  std::condition_variable_any changed_;
  epoch_lease lease_;
  std::string last_fault_;   // of a renewal, since one succeeded
  bool is_told_ = false;     // that it was deposed
  bool in_trouble_ = false;  // of the asking thread
  std::optional<epoch_row> told_;
  std::jthread asking_;
  std::jthread watching_;
};

}  // namespace leasehold::server
