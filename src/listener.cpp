#include "src/listener.hpp"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/steady_timer.hpp>
#include <future>
#include <utility>

#include "src/http_answer.hpp"
#include "src/http_connection.hpp"
#include "src/peer_stream.hpp"

namespace leasehold::server {
namespace {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;

constexpr std::chrono::milliseconds accept_pause{100};
/// What a connection beyond the caps reads; it was not asked what it wants.
std::string refusal_text(admission::refusal why) {
  const bool full = why == admission::refusal::full;
  return answer_text(full ? refusal(503, "Too many connections; come back later.")
                          : refusal(429, "Too many handshakes from this address; come back later."),
                     false, true);
}

std::string where(const std::string& address, std::uint16_t port) {
  const bool v6 = address.find(':') != std::string::npos;
  return (v6 ? '[' + address + ']' : address) + ':' + std::to_string(port);
}

/// Binds and listens; throws boost::system::system_error.
std::unique_ptr<tcp::acceptor> listen_on(asio::io_context& loop, const tcp::endpoint& at) {
  auto acceptor = std::make_unique<tcp::acceptor>(loop);
  acceptor->open(at.protocol());
  // A port that only old connections linger on is free; one that somebody listens on is not.
  acceptor->set_option(asio::socket_base::reuse_address{true});
  acceptor->bind(at);
  acceptor->listen(asio::socket_base::max_listen_connections);
  acceptor->non_blocking(true);
  return acceptor;
}

}  // namespace

listener::listener(std::vector<thread> threads, const net_limits& limits,
                   std::shared_ptr<const live_tls> tls)
    : limits_(limits), tls_(std::move(tls)), admission_(std::make_shared<admission>(limits)) {
  for (thread& one : threads) {
    served made{one.loop, std::make_shared<connection_host>(),
                std::make_shared<std::atomic<std::int64_t>>(0)};
    made.host->handler = std::move(one.handler);
    made.host->limits = limits;
    made.host->counters = counters_;
    made.host->tls = tls_;
    threads_.push_back(std::move(made));
  }
}

listener::~listener() { stop(protocol::close_code::going_away, "", std::chrono::milliseconds{0}); }

std::variant<std::uint16_t, listen_failed> listener::open(const std::string& address,
                                                          std::uint16_t port) {
  boost::system::error_code unreadable;
  const auto parsed = asio::ip::make_address(address, unreadable);
  if (unreadable) {
    return listen_failed{"\"" + address + "\" is not an IPv4 or IPv6 address in digits."};
  }
  asio::io_context& loop = threads_.front().loop->io();
  try {
    acceptor_ = listen_on(loop, {parsed, port});
  } catch (const boost::system::system_error& failed) {
    return listen_failed{"Cannot listen on " + where(address, port) + ": " +
                         failed.code().message() + "; choose another address or port."};
  }
  pause_ = std::make_unique<asio::steady_timer>(loop);
  const std::uint16_t bound = acceptor_->local_endpoint().port();
  open_ = true;
  threads_.front().loop->post([this] { accept(); });
  return bound;
}

void listener::stop_accepting() {
  if (!open_) return;
  std::promise<void> closed;
  threads_.front().loop->post([this, &closed] {
    boost::system::error_code ignored;
    acceptor_->close(ignored);
    pause_->cancel();
    closed.set_value();
  });
  closed.get_future().wait();
}

void listener::stop(protocol::close_code code, const std::string& why,
                    std::chrono::milliseconds limit) {
  if (!open_) return;
  const auto until = std::chrono::steady_clock::now() + limit;
  stop_accepting();
  open_ = false;
  on_each([code, &why](served& one) {
    one.host->ending = true;
    for (const auto& open : one.host->all()) open->end(code, why);
  });
  if (!admission_->wait_until_empty(until)) {
    on_each([](served& one) {
      for (const auto& open : one.host->all()) open->abort();
    });
  }
  on_each([](served& one) { one.host->handler.reset(); });
}

std::vector<std::int64_t> listener::connections_by_thread() const {
  std::vector<std::int64_t> counts;
  for (const served& one : threads_) counts.push_back(one.connections->load());
  return counts;
}

void listener::accept() {
  served& to = least_busy();
  acceptor_->async_accept(
      to.loop->io().get_executor(),
      [this, &to](const boost::system::error_code& failed, peer_stream::socket_type socket) {
        if (!acceptor_->is_open()) return;
        if (failed) {
          on_accept_failed(failed);
          return;
        }
        on_accept(to, std::move(socket));
        accept();
      });
}

void listener::on_accept(served& to, peer_stream::socket_type socket) {
  boost::system::error_code gone;
  const auto peer = socket.remote_endpoint(gone).address();
  if (gone) return;
  auto [admitted, why] = admission_->admit(peer.to_string(), peer.is_loopback());
  if (!admitted) {
    counters_->connections_refused.fetch_add(1);
    refuse(std::move(socket), why);
    return;
  }
  counters_->connections_accepted.fetch_add(1);
  admitted->count_in(to.connections);
  socket.set_option(tcp::no_delay{true}, gone);
  to.loop->post([host = to.host, peer = peer.to_string(), socket = std::move(socket),
                 ticket = std::move(admitted)]() mutable {
    if (host->ending) return;
    auto stream = std::make_shared<peer_stream>(std::move(socket), host->counters,
                                                host->tls ? host->tls->current()->open() : nullptr);
    open_http(std::move(stream), std::move(peer), host, std::move(ticket));
  });
}

/// Says so without waiting for the peer, and closes. Over TLS the end itself has to say it: a
/// handshake costs more than what is refused here.
void listener::refuse(peer_stream::socket_type socket, admission::refusal why) {
  boost::system::error_code ignored;
  socket.non_blocking(true, ignored);
  if (tls_ == nullptr) socket.write_some(asio::buffer(refusal_text(why)), ignored);
  socket.shutdown(asio::socket_base::shutdown_send, ignored);
}

/// No descriptor, no memory: it may pass. Who waits is told, where that is possible.
void listener::on_accept_failed(const boost::system::error_code& why) {
  if (why != asio::error::no_descriptors) {
    accept_after_pause();
    return;
  }
  const auto refused = refuse_by_spare();
  if (!spare_.is_held()) {
    accept_after_pause();
  } else if (refused == asio::error::would_block) {
    accept_when_somebody_waits();
  } else {
    accept();
  }
}

/// Takes one connection with the descriptor that is kept for this, and turns it away.
boost::system::error_code listener::refuse_by_spare() {
  spare_.give_up();
  boost::system::error_code failed;
  auto socket = acceptor_->accept(threads_.front().loop->io().get_executor(), failed);
  if (!failed) {
    counters_->connections_refused.fetch_add(1);
    refuse(std::move(socket), admission::refusal::full);
  }
  spare_.take_again();
  return failed;
}

/// Without a descriptor an accept fails at once, also while there is nobody to be accepted.
void listener::accept_when_somebody_waits() {
  acceptor_->async_wait(asio::socket_base::wait_read,
                        [this](const boost::system::error_code& cancelled) {
                          if (!cancelled && acceptor_->is_open()) accept();
                        });
}

void listener::accept_after_pause() {
  pause_->expires_after(accept_pause);
  pause_->async_wait([this](const boost::system::error_code& cancelled) {
    if (!cancelled && acceptor_->is_open()) accept();
  });
}

listener::served& listener::least_busy() {
  return *std::min_element(threads_.begin(), threads_.end(), [](const served& a, const served& b) {
    return a.connections->load() < b.connections->load();
  });
}

void listener::on_each(const std::function<void(served&)>& what) {
  std::vector<std::future<void>> done;
  for (served& one : threads_) {
    std::packaged_task<void()> task{[&what, &one] { what(one); }};
    done.push_back(task.get_future());
    one.loop->post(std::move(task));
  }
  for (auto& one : done) one.wait();
}

}  // namespace leasehold::server
