// A worker process: connected to a coordinator, taking jobs, renewing them, reporting their ends.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "leasehold/client/chaos.hpp"
#include "leasehold/client/job.hpp"
#include "leasehold/client/worker_session.hpp"

namespace leasehold::client {

/// What happens to the worker itself, for logs and counters.
struct worker_event {
  enum class kind : std::uint8_t {
    connected,     ///< welcomed; `text`: the node
    disconnected,  ///< `text`: why; it connects again
    draining,      ///< the coordinator drains
    closed,        ///< the coordinator's final answer about a job; `text`: decision and reason
    ended,         ///< it will never work again; `text`: why
  };
  kind what = kind::connected;
  std::string text;
  grant about;          ///< closed
  int http_status = 0;  ///< disconnected, ended: of a refused upgrade
};

struct worker_options {
  /// ws://HOST:PORT[/v1/stream], or with wss, http or https: of the coordinators of one store,
  /// tried in turn. One that is a standby may name another; the token goes there too.
  std::vector<std::string> urls;
  std::string token;                ///< bearer token; never logged; empty: none is sent
  std::vector<queue_slots> queues;  ///< at most most_slots in all
  std::string client_name = "leasehold";
  std::string client_version = "0";
  std::string ca_file;    ///< certificates to trust for TLS (PEM); empty: the system's
  std::string cert_file;  ///< client certificate for TLS (PEM), with key_file; empty: none
  std::string key_file;   ///< its key (PEM, no passphrase); never logged
  bool json = false;      ///< speak JSON instead of Protobuf, for watching the wire
  std::optional<chaos_options> chaos;
  protocol::duration reconnect_first{100};
  protocol::duration reconnect_most{5000};

  /// Called for each job on `executor`, once it may start. Must not throw.
  std::function<void(job)> on_job;
  /// Called on a thread of the worker's; may be empty.
  std::function<void(const worker_event&)> on_event;
  /// Runs jobs; empty: a pool of its own with a thread for each slot.
  std::function<void(std::function<void()>)> executor;
};

/// May be used from any thread. Renewing never depends on the threads that work.
class worker {
 public:
  explicit worker(worker_options options);
  /// Stops without patience; returns once no on_job runs any more on the worker's own pool.
  ~worker();
  worker(const worker&) = delete;
  worker& operator=(const worker&) = delete;

  /// Begins to connect. A sentence when the options are wrong; then nothing was begun.
  [[nodiscard]] std::optional<std::string> start();
  /// Takes no more jobs; those that run go on.
  void drain();
  /// Drains, waits up to `drain_timeout` for the work to end, asks what still runs to stop and
  /// waits up to `stop_grace` for that, waits for the last answers, says goodbye. True: nothing was
  /// left.
  bool stop(protocol::duration drain_timeout, protocol::duration stop_grace);

  /// Jobs that run here.
  [[nodiscard]] std::size_t running() const;
  /// Jobs that run here or whose end the coordinator has not answered.
  [[nodiscard]] std::size_t open() const;
  [[nodiscard]] bool connected() const;
  /// True once it will never work again: superseded, or refused.
  [[nodiscard]] bool ended() const;

 private:
  class loop;
  std::optional<std::string> fault_;
  std::unique_ptr<loop> loop_;  ///< empty when the options are wrong
};

/// 128 random bits as 32 hex digits, the same for the whole life of this process.
const std::string& process_incarnation();

}  // namespace leasehold::client
