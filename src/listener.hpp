// Accepts connections on one address and shares them out to the threads, each to the one that has
// the fewest. A connection stays on its thread.
#pragma once

#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "leasehold/protocol/frame.hpp"
#include "src/admission.hpp"
#include "src/connections.hpp"
#include "src/peer_stream.hpp"
#include "src/spare_descriptor.hpp"
#include "src/thread_loop.hpp"
#include "src/tls_context.hpp"

namespace leasehold::server {

/// The address cannot be listened on: one sentence that names it and says why.
struct listen_failed {
  std::string sentence;
};

/// Owned outside the loops that it uses, which run from open to stop. The first of them accepts.
///
/// Not by SO_REUSEPORT on each thread: the kernel then balances by hash, and a second process could
/// quietly take a share of the connections.
class listener {
 public:
  /// Where connections live: a loop, and what answers on it.
  struct thread {
    thread_loop* loop = nullptr;
    std::shared_ptr<http_handler> handler;
  };

  /// `tls`: of the connections that come; null: they are plain.
  listener(std::vector<thread> threads, const net_limits& limits,
           std::shared_ptr<const live_tls> tls = nullptr);
  listener(const listener&) = delete;
  listener& operator=(const listener&) = delete;
  ~listener();

  /// Binds and begins to accept. `address`: IPv4 or IPv6 in digits; `port` 0: any that is free.
  /// Returns the port. Called once, from outside the loops.
  std::variant<std::uint16_t, listen_failed> open(const std::string& address, std::uint16_t port);

  /// Accepts no more; what is open goes on. From outside the loops.
  void stop_accepting();

  /// Accepts no more and ends what is open: requests that are being answered get their answer,
  /// sockets are closed with `code`. Whatever is left after `limit` is cut off. Returns when
  /// nothing is open and each handler has been let go on its loop. From outside the loops; a second
  /// call does nothing.
  void stop(protocol::close_code code, const std::string& why, std::chrono::milliseconds limit);

  [[nodiscard]] const net_counters& counters() const noexcept { return *counters_; }
  [[nodiscard]] std::size_t connections() const { return admission_->connections(); }
  /// Whether who connects now is turned away, for a limit of ours or for want of a descriptor.
  [[nodiscard]] bool full() const { return admission_->full() || !spare_.is_one_left(); }
  [[nodiscard]] std::vector<std::int64_t> connections_by_thread() const;

 private:
  struct served {
    thread_loop* loop = nullptr;
    std::shared_ptr<connection_host> host;  // touched on the loop alone
    std::shared_ptr<std::atomic<std::int64_t>> connections;
  };

  void accept();
  void on_accept(served& where, peer_stream::socket_type socket);
  void on_accept_failed(const boost::system::error_code& why);
  void refuse(peer_stream::socket_type socket, admission::refusal why);
  boost::system::error_code refuse_by_spare();
  void accept_when_somebody_waits();
  void accept_after_pause();
  served& least_busy();
  /// Runs `what` on each loop, and returns when it has run.
  void on_each(const std::function<void(served&)>& what);

  net_limits limits_;
  std::shared_ptr<const live_tls> tls_;
  std::shared_ptr<net_counters> counters_ = std::make_shared<net_counters>();
  std::shared_ptr<admission> admission_;
  std::vector<served> threads_;
  bool open_ = false;
  spare_descriptor spare_;
  // On the first loop, once open.
  std::unique_ptr<boost::asio::ip::tcp::acceptor> acceptor_;
  std::unique_ptr<boost::asio::steady_timer> pause_;
};

}  // namespace leasehold::server
