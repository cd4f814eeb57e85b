// The bytes from and to one peer. What is written within a turn or a few of the loop goes out in
// one system call: at one frame a message that is most of the cost of an answer. Plain or TLS: who
// reads and writes is told by nothing but the handshake.
#pragma once

#include <boost/asio/async_result.hpp>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "src/net_limits.hpp"
#include "src/tls_channel.hpp"

namespace leasehold::server {

/// On one thread. Operations under way keep it alive.
class peer_stream : public std::enable_shared_from_this<peer_stream> {
 public:
  using executor_type = boost::asio::io_context::executor_type;
  using socket_type = boost::asio::basic_stream_socket<boost::asio::ip::tcp, executor_type>;

  /// `tls`: of a stream over TLS; nothing is read or written then before shake_hands() has worked.
  peer_stream(socket_type socket, std::shared_ptr<net_counters> counters,
              std::unique_ptr<tls_channel> tls = nullptr);

  [[nodiscard]] executor_type get_executor() noexcept { return socket_.get_executor(); }

  /// Null: the stream is plain.
  [[nodiscard]] const tls_channel* tls() const noexcept { return tls_.get(); }
  /// Calls `then` once, with whether the handshake has worked; not when the stream is closed first.
  void shake_hands(std::function<void(bool worked)> then);
  /// For a last word to a peer that does not speak TLS.
  void go_on_plain() noexcept { tls_.reset(); }

  /// As Asio's own; at most one reader at a time.
  template <class Buffers, class Token>
  auto async_read_some(const Buffers& into, Token&& token) {
    if (tls_ == nullptr) return socket_.async_read_some(into, std::forward<Token>(token));
    return boost::asio::async_initiate<Token, read_signature>(
        [this](auto&& then, boost::asio::mutable_buffer room) {
          // Where it is kept has to be copied, which not every completion can be.
          using completion = std::decay_t<decltype(then)>;
          auto kept = std::make_shared<completion>(std::forward<decltype(then)>(then));
          read_sealed(room, [kept](const boost::system::error_code& failed, std::size_t bytes) {
            (*kept)(failed, bytes);
          });
        },
        token, first_room(into));
  }

  /// Queues bytes. They are sent together with what else is written in this turn of the loop, and
  /// in the next few as long as more comes and it is not much. Nothing after close or a failure.
  void write(std::string_view bytes);
  [[nodiscard]] std::size_t queued_bytes() const noexcept {
    return waiting_.size() + sending_.size();
  }
  /// Forgets what is not yet being sent. The peer sees a message cut off unless nothing of it went.
  void drop_waiting() noexcept { waiting_.clear(); }
  /// Once, when everything queued has been sent; not when that fails.
  void when_drained(std::function<void()> then);
  /// Once, when sending has failed: the peer is gone.
  void when_failed(std::function<void()> then) { failed_ = std::move(then); }

  /// Sends what is queued, then ends the sending direction, waits for the peer to end its own and
  /// closes; after `limit` in any case. What the peer still sends is discarded: closing with unread
  /// bytes would take the last answer from it. Then calls `done`, once. `being_read`: a read is
  /// under way, whose outcome the reader passes to read_ended.
  void finish(std::chrono::milliseconds limit, bool being_read, std::function<void()> done);
  void read_ended(const boost::system::error_code& failed);
  /// Closes now, by RST when not all of what was queued has gone. Operations under way end with an
  /// error.
  void close();

 private:
  using read_signature = void(boost::system::error_code, std::size_t);
  using read_done = std::function<void(const boost::system::error_code&, std::size_t)>;
  struct read_outcome {
    boost::system::error_code failed;
    std::size_t bytes = 0;
  };

  template <class Buffers>
  static boost::asio::mutable_buffer first_room(const Buffers& into) {
    auto at = boost::asio::buffer_sequence_begin(into);
    const auto end = boost::asio::buffer_sequence_end(into);
    while (at != end && boost::asio::mutable_buffer(*at).size() == 0) ++at;
    return at == end ? boost::asio::mutable_buffer() : boost::asio::mutable_buffer(*at);
  }
  /// Calls `then` when the socket can do what TLS wants; with false when it never will.
  void when_ready(tls_channel::step wanted, std::function<void(bool ready)> then);
  void read_sealed(boost::asio::mutable_buffer into, read_done done);
  /// Nothing: `wanted` must come first.
  std::optional<read_outcome> try_read(boost::asio::mutable_buffer into, tls_channel::step& wanted);
  void send_sealed();
  void end_sending();
  void count_sent(std::size_t bytes);

  void schedule_turn();
  void take_turn();
  void send_waiting();
  void send_rest();
  void fail();
  void discard();
  void end_finish();

  socket_type socket_;
  std::unique_ptr<tls_channel> tls_;
  std::shared_ptr<net_counters> counters_;
  std::string waiting_;
  std::string sending_;
  std::size_t sent_ = 0;  // of sending_
  bool busy_ = false;     // a turn is scheduled or bytes are being sent
  int turns_ = 0;         // that the waiting bytes have been held back
  std::size_t seen_ = 0;  // waiting bytes at the last turn
  bool closed_ = false;
  std::function<void()> drained_;
  std::function<void()> failed_;

  boost::asio::steady_timer finish_limit_;
  std::function<void()> finished_;
  std::string discarded_;
  bool being_read_ = false;
  bool shut_ = false;        // our direction has ended
  bool peer_ended_ = false;  // the peer's has
};

}  // namespace leasehold::server
