// What leaseholdd is made of while it runs, for the files that put it together and take it apart.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "leasehold/actors/coordinator.hpp"
#include "src/boot_timer.hpp"
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
  std::shared_ptr<actors::store> store;
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
  bool stopped = false;
  std::int64_t refusals_told = 0;  // of connections
  std::chrono::steady_clock::time_point refusals_told_at;
  std::int64_t failures_told = 0;  // of TLS handshakes
  std::chrono::steady_clock::time_point failures_told_at;

  std::optional<start_failed> read_access();
  std::optional<start_failed> read_tls();
  void reload_tls(const options& next);
  void tell_certificate(const options& of) const;
  std::optional<start_failed> open_store();
  void start_loops();
  std::optional<start_failed> start_coordinator();
  std::optional<start_failed> listen();
  void warn_of_few_connections();
  std::shared_ptr<http_api> make_api(std::size_t thread, const api_shared& shared);
  void end_revoked_sockets();
  [[nodiscard]] protocol::reason why_unready() const;
  void report_refusals();
  void report_failed_handshakes();
  [[noreturn]] void end_at_once(int exit_code) const;
};

}  // namespace leasehold::server
