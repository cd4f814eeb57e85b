// What leaseholdd is made of while it runs, for the files that put it together and take it apart.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "leasehold/actors/coordinator.hpp"
#include "src/active_role.hpp"
#include "src/boot_timer.hpp"
#include "src/epoch_keeper.hpp"
#include "src/http_api.hpp"
#include "src/listener.hpp"
#include "src/server.hpp"
#include "src/store/sqlite_store.hpp"
#include "src/system_clock.hpp"
#include "src/thread_loop.hpp"
#include "src/tls_context.hpp"

namespace leasehold::server {

actors::actor_options actor_options_of(const options& chosen);
/// No principal holds more than the operator lets any.
principal_set capped(principal_set all, const options& chosen);
tls_files tls_files_of(const options& chosen);

struct server::parts {
  invocation how;
  std::shared_ptr<log> lines;
  std::shared_ptr<live_options> chosen;
  std::shared_ptr<principal_registry> principals;
  std::shared_ptr<live_tls> tls;  // null: connections are plain
  std::shared_ptr<active_role> role;
  std::shared_ptr<actors::store> store;  // null on a standby, as is all that is made of it
  std::shared_ptr<system_clock> clock;
  std::shared_ptr<actors::counters> counters = std::make_shared<actors::counters>();
  std::shared_ptr<storage::read_pool> reads;
  std::vector<std::unique_ptr<thread_loop>> loops;
  std::vector<std::shared_ptr<boot_timer>> timers;
  std::unique_ptr<actors::coordinator> coordinator;
  std::vector<std::weak_ptr<api_context>> apis;  // by thread; each lives on its own
  std::unique_ptr<listener> ears;
  std::uint16_t port = 0;
  std::atomic<bool> draining{false};
  protocol::instant drain_until;
  std::function<void()> wake;            // makes the caller of look_after call it now
  std::unique_ptr<epoch_keeper> keeper;  // null: no other coordinator can have the store
  std::string holder;                    // what the epoch is taken as
  std::atomic<std::int64_t> taken{0};    // the epoch that is to be served; 0: none yet
  bool serves = false;
  std::mutex trouble_mutex;
  std::optional<start_failed> hopeless;  // why this standby can never serve
  std::chrono::steady_clock::time_point trouble_told_at;
  bool stopped = false;
  std::int64_t refusals_told = 0;  // of connections
  std::chrono::steady_clock::time_point refusals_told_at;
  std::int64_t failures_told = 0;  // of TLS handshakes
  std::chrono::steady_clock::time_point failures_told_at;

  std::optional<start_failed> read_access();
  std::optional<start_failed> read_tls();
  void reload_tls(const options& next);
  void tell_certificate(const options& of) const;
  /// Whether other coordinators may have the same store.
  [[nodiscard]] bool is_shared() const;
  std::optional<start_failed> open_store();
  /// Goes on from the store's newest anchor; `behind`: see system_clock::start.
  std::optional<start_failed> start_clock(protocol::duration behind);
  void start_loops();
  void make_timers();
  std::optional<start_failed> start_coordinator();
  /// Lets the threads' APIs reach what was recovered.
  void hand_over();
  std::optional<start_failed> listen();
  void warn_of_few_connections();
  std::shared_ptr<http_api> make_api(std::size_t thread, const api_shared& shared);
  void end_revoked_sockets();
  [[nodiscard]] protocol::reason why_unready() const;

  // ---- the epoch of a store that several coordinators may use
  void keep_epoch();
  /// Opens and recovers the store under the epoch that was taken, and serves.
  std::optional<start_failed> activate();
  std::optional<start_failed> open_shared_store();
  [[nodiscard]] std::string own_address() const;
  void on_taken(std::int64_t epoch, bool over);
  void on_trouble(const actors::store_error* why);
  [[noreturn]] void begin_again(const deposed& why);
  void report_refusals();
  void report_failed_handshakes();
  [[noreturn]] void end_at_once(int exit_code) const;
};

}  // namespace leasehold::server
