// A stream to a coordinator, TCP or TLS, whose calls block, but never past their deadline.
#pragma once

#include <poll.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core/role.hpp>
#include <chrono>
#include <memory>
#include <string>

#include "tools/http_client.hpp"

namespace leasehold::tools {

namespace asio = boost::asio;
using boost::system::error_code;
using clock = std::chrono::steady_clock;

/// A socket that blocks, but never past its deadline: Asio's own blocking calls know no timeout.
class timed_socket {
 public:
  using executor_type = asio::ip::tcp::socket::executor_type;
  using lowest_layer_type = timed_socket;

  explicit timed_socket(asio::io_context& io) : socket_(io) {}

  executor_type get_executor() { return socket_.get_executor(); }
  lowest_layer_type& lowest_layer() { return *this; }
  asio::ip::tcp::socket& socket() { return socket_; }
  void expires_at(clock::time_point deadline) { deadline_ = deadline; }
  /// Once `descriptor` is readable, every wait ends with operation_aborted; -1: none does.
  void stop_at(int descriptor) { stop_descriptor_ = descriptor; }

  template <class Buffers>
  std::size_t read_some(const Buffers& buffers, error_code& error) {
    return repeat(POLLIN, error, [&] { return socket_.read_some(buffers, error); });
  }
  template <class Buffers>
  std::size_t write_some(const Buffers& buffers, error_code& error) {
    return repeat(POLLOUT, error, [&] { return socket_.write_some(buffers, error); });
  }
  template <class Buffers>
  std::size_t read_some(const Buffers& buffers) {
    return checked([&](error_code& error) { return read_some(buffers, error); });
  }
  template <class Buffers>
  std::size_t write_some(const Buffers& buffers) {
    return checked([&](error_code& error) { return write_some(buffers, error); });
  }

  /// Waits until the socket is ready for `events`; timed_out at the deadline, operation_aborted
  /// when it is to stop.
  error_code wait(short events);

 private:
  template <class Try>
  std::size_t repeat(short events, error_code& error, Try attempt) {
    for (;;) {
      const std::size_t moved = attempt();
      if (error != asio::error::would_block && error != asio::error::try_again) return moved;
      error = wait(events);
      if (error) return 0;
    }
  }
  template <class Call>
  static std::size_t checked(Call call) {
    error_code error;
    const std::size_t moved = call(error);
    if (error) throw boost::system::system_error(error);
    return moved;
  }

  asio::ip::tcp::socket socket_;
  clock::time_point deadline_ = clock::time_point::max();
  int stop_descriptor_ = -1;
};

/// Plain or TLS behind one type, so that HTTP and WebSocket are compiled once.
class any_stream {
 public:
  using executor_type = timed_socket::executor_type;
  using lowest_layer_type = timed_socket;

  any_stream(asio::io_context& io, asio::ssl::context* tls) : plain_(io) {
    if (tls != nullptr) secure_ = std::make_unique<asio::ssl::stream<timed_socket&>>(plain_, *tls);
  }

  executor_type get_executor() { return plain_.get_executor(); }
  lowest_layer_type& lowest_layer() { return plain_; }
  timed_socket& plain() { return plain_; }
  asio::ssl::stream<timed_socket&>* secure() { return secure_.get(); }

  template <class Buffers>
  std::size_t read_some(const Buffers& buffers, error_code& error) {
    return secure_ ? secure_->read_some(buffers, error) : plain_.read_some(buffers, error);
  }
  template <class Buffers>
  std::size_t write_some(const Buffers& buffers, error_code& error) {
    return secure_ ? secure_->write_some(buffers, error) : plain_.write_some(buffers, error);
  }
  template <class Buffers>
  std::size_t read_some(const Buffers& buffers) {
    return secure_ ? secure_->read_some(buffers) : plain_.read_some(buffers);
  }
  template <class Buffers>
  std::size_t write_some(const Buffers& buffers) {
    return secure_ ? secure_->write_some(buffers) : plain_.write_some(buffers);
  }

 private:
  timed_socket plain_;
  std::unique_ptr<asio::ssl::stream<timed_socket&>> secure_;
};

/// What a connection shows that the other side has closed.
bool is_closed_by_peer(const error_code& error);

/// Called by Beast where a WebSocket ends.
void teardown(boost::beast::role_type, any_stream& stream, error_code& error);

/// A stream with all that it stands on.
class timed_connection {
 public:
  /// Connects and, where the endpoint asks for it, shakes hands. Nothing when it worked.
  error_code open(const client_options& options);
  /// A sentence when a file that the options name was no use; else empty.
  [[nodiscard]] const std::string& file_fault() const noexcept { return file_fault_; }
  /// What is really wrong where a call on the stream ended with `error`. Over TLS the other side
  /// may have said why before it closed the connection, which is what the call saw.
  error_code cause_of(const error_code& error);
  /// Only after open() has worked.
  [[nodiscard]] any_stream& stream() noexcept { return *stream_; }

 private:
  error_code prepare_tls(const client_options& options);
  error_code use_files(const client_options& options);
  error_code connect(const client_options& options);
  error_code connect_to(const asio::ip::tcp::endpoint& where);

  asio::io_context io_;
  std::unique_ptr<asio::ssl::context> tls_;
  std::unique_ptr<any_stream> stream_;
  std::string file_fault_;
};

}  // namespace leasehold::tools
