// Keeps a lock that was acquired: renews it, listens for its loss, and releases it.
#pragma once

#include <memory>
#include <string>

#include "tools/exec/authority.hpp"
#include "tools/exec/lock_client.hpp"
#include "tools/exec/renew_schedule.hpp"

namespace leasehold::tools {

/// Where the lock stands, as it is known here.
struct lock_standing {
  authority holds;
  bool is_lost = false;  ///< the coordinator said so
  std::string why;       ///< of a loss, or of the last renew that failed; for people
};

/// Two threads of its own, each with a connection: one renews, one waits for the end of the
/// generation. The other calls come from one thread.
class lock_keeper {
 public:
  /// `connection` names where the coordinator is, and with which token.
  lock_keeper(client_options connection, lock_grant grant, renew_schedule schedule);
  /// Ends the threads.
  ~lock_keeper();
  lock_keeper(const lock_keeper&) = delete;
  lock_keeper& operator=(const lock_keeper&) = delete;

  /// On the caller's thread, before start(): renews if that is due already, as after a long wait
  /// for the lock, until one is accepted. False: it was lost, or `give_up` came first. Leaves no
  /// connection open.
  bool renew_first(boot_time give_up);
  void start();
  /// Ends the threads; what they wait for is given up.
  void stop();
  [[nodiscard]] lock_standing standing() const;
  /// A descriptor that is readable once the standing has changed; clear_bell() before looking.
  [[nodiscard]] int bell() const noexcept;
  void clear_bell() const noexcept;
  [[nodiscard]] const lock_grant& grant() const noexcept;

 private:
  struct threads;
  std::unique_ptr<threads> threads_;
};

/// How a release ended.
enum class release_end { released, lost_before, unknown };

/// Gives the lock back, trying again for some seconds, but not beyond `last`. `sentence` is set
/// unless it was released.
release_end release_lock(client_options connection, const lock_grant& grant, boot_time last,
                         std::string& sentence);

}  // namespace leasehold::tools
