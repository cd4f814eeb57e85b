// The one translation unit that instantiates Beast's WebSocket. Beast reads, checks and closes;
// whole messages of ours are framed here, so that any number of them goes out in one system call.
#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/websocket/rfc6455.hpp>
#include <boost/beast/websocket/stream.hpp>
#include <utility>

#include "src/beast_layer.hpp"
#include "src/socket_pace.hpp"
#include "src/websocket.hpp"
#include "src/websocket_frame.hpp"

namespace leasehold::server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace websocket = boost::beast::websocket;

using time_point = socket_pace::time_point;

class beast_socket final : public socket,
                           public connection,
                           public std::enable_shared_from_this<beast_socket> {
 public:
  beast_socket(std::shared_ptr<peer_stream> stream, upgrade_accepted accepted,
               std::shared_ptr<connection_host> host, std::unique_ptr<admission::ticket> ticket)
      : stream_(std::move(stream)),
        accepted_(std::move(accepted)),
        host_(std::move(host)),
        ticket_(std::move(ticket)),
        websocket_(beast_layer{stream_}),
        timer_(stream_->get_executor()),
        pace_(host_->limits, now()) {}

  void start(const http_request& request) {
    stream_->when_failed([this] { abort(); });
    configure();
    limit(host_->limits.closing);
    upgrade_request_ = as_beast(request);
    websocket_.async_accept(upgrade_request_,
                            [self = shared_from_this()](const boost::system::error_code& failed) {
                              self->on_accept(failed);
                            });
  }

  // ---- socket

  void send(std::string message) override {
    if (state_ != state::open || websocket_.next_layer().close_sent()) return;
    const frame_head head = message_head(accepted_.text, message.size());
    if (stream_->queued_bytes() + head.size() + message.size() > accepted_.outbound_limit) {
      host_->counters->slow_readers.fetch_add(1, std::memory_order_relaxed);
      stream_->drop_waiting();
      close(protocol::close_code::slow_reader, "messages are not read");
      return;
    }
    host_->counters->messages_sent.fetch_add(1, std::memory_order_relaxed);
    stream_->write(head.text());
    stream_->write(message);
  }

  void close(protocol::close_code code, std::string_view why) override {
    if (state_ != state::open) return;
    state_ = state::closing;
    limit(host_->limits.closing);
    // A close frame has room for 123 bytes of reason; ours are ASCII.
    const websocket::close_reason reason{
        static_cast<websocket::close_code>(code),
        beast::string_view{why.data(), std::min(why.size(), std::size_t{123})}};
    websocket_.async_close(reason,
                           [self = shared_from_this()](const boost::system::error_code& failed) {
                             self->on_close_done(failed);
                           });
    // The events may be in the middle of a call that led here.
    asio::post(stream_->get_executor(), [self = shared_from_this()] { self->tell_closed(); });
  }

  void pause_reading(bool paused) override {
    if (paused_ == paused) return;
    paused_ = paused;
    if (paused || state_ != state::open) return;
    pace_.hear(now());
    asio::post(stream_->get_executor(), [self = shared_from_this()] { self->resume(); });
  }

  [[nodiscard]] std::size_t queued_bytes() const override { return stream_->queued_bytes(); }

  // ---- connection

  void end(protocol::close_code code, const std::string& why) override {
    if (state_ == state::accepting) {
      abort();
    } else {
      close(code, why);
    }
  }

  void abort() override {
    if (std::exchange(state_, state::ended) == state::ended) {
      stream_->close();  // leaves, when the last bytes were still being sent
      return;
    }
    timer_.cancel();
    stream_->close();
    tell_closed();
    leave();
  }

 private:
  enum class state { accepting, open, closing, ended };

  static time_point now() { return asio::steady_timer::clock_type::now(); }

  void configure() {
    // The times are kept here: Beast's own count a socket that we do not read as silent.
    websocket_.set_option(websocket::stream_base::timeout{websocket::stream_base::none(),
                                                          websocket::stream_base::none(), false});
    websocket_.set_option(websocket::stream_base::decorator(
        [protocol = accepted_.subprotocol](websocket::response_type& answer) {
          answer.set(beast::http::field::server, "leasehold");
          if (!protocol.empty()) {
            answer.set(beast::http::field::sec_websocket_protocol, protocol);
          }
        }));
    websocket_.read_message_max(accepted_.message_limit);
    websocket_.control_callback(
        [this](websocket::frame_type kind, beast::string_view) { on_control(kind); });
  }

  static beast::http::request<beast::http::empty_body> as_beast(const http_request& request) {
    beast::http::request<beast::http::empty_body> made{beast::http::verb::get, request.target, 11};
    for (const auto& [name, value] : request.headers) made.insert(name, value);
    return made;
  }

  void on_accept(const boost::system::error_code& failed) {
    if (state_ != state::accepting) return;
    if (failed) {
      abort();
      return;
    }
    state_ = state::open;
    upgrade_request_ = {};
    host_->counters->sockets_opened.fetch_add(1, std::memory_order_relaxed);
    host_->counters->sockets_open.fetch_add(1);
    counted_ = true;
    pace_.hear(now());
    events_ = std::exchange(accepted_.start, nullptr)(shared_from_this());
    if (state_ != state::open) return;
    watch();
    if (!paused_) read();
  }

  // ---- reading

  void read() {
    reading_ = true;
    websocket_.async_read_some(
        buffer_, read_bytes,
        [self = shared_from_this()](const boost::system::error_code& failed, std::size_t bytes) {
          self->reading_ = false;
          self->on_read(failed, bytes);
        });
  }

  void on_read(const boost::system::error_code& failed, std::size_t bytes) {
    if (state_ == state::ended) return;
    if (failed) {
      on_read_failed(failed);
      return;
    }
    // What still comes while a close is under way is the close operation's to read.
    if (state_ != state::open) return;
    host_->counters->bytes_read.fetch_add(static_cast<std::int64_t>(bytes),
                                          std::memory_order_relaxed);
    if (!websocket_.is_message_done()) {
      take_piece();
      return;
    }
    pace_.hear(now());
    pace_.end_message();
    if (paused_) {
      held_ = true;
    } else {
      deliver();
    }
  }

  void take_piece() {
    const bool tolerable = pace_.take_piece(now(), buffer_.size());
    if (pace_.began_message()) watch();
    if (!tolerable) {
      close(protocol::close_code::policy, "a message in too many or too slow pieces");
      return;
    }
    read();
  }

  void deliver() {
    held_ = false;
    host_->counters->messages_read.fetch_add(1, std::memory_order_relaxed);
    const auto events = events_;  // survives a close from within
    const auto bytes = buffer_.data();
    events->on_message({static_cast<const std::byte*>(bytes.data()), bytes.size()},
                       websocket_.got_text());
    buffer_.consume(buffer_.size());
    if (buffer_.capacity() > keep_bytes) buffer_.shrink_to_fit();
    if (state_ == state::open && !paused_) read();
  }

  void resume() {
    if (state_ != state::open || paused_ || reading_) return;
    if (held_) {
      deliver();
    } else {
      read();
    }
  }

  /// The peer has closed, has gone, or has broken the protocol; of the last Beast has told it.
  void on_read_failed(const boost::system::error_code& failed) {
    if (state_ == state::closing) return;  // the close operation ends too, or its time does
    if (failed == websocket::error::closed || !stream_is_gone(failed)) {
      state_ = state::closing;
      tell_closed();
      on_close_done({});
    } else {
      abort();
    }
  }

  static bool stream_is_gone(const boost::system::error_code& failed) {
    return failed.category() == boost::system::system_category() ||
           failed.category() == asio::error::get_misc_category();
  }

  /// Pings and pongs; Beast answers pings itself.
  void on_control(websocket::frame_type kind) {
    if (kind == websocket::frame_type::close || pace_.take_control(now())) return;
    asio::post(stream_->get_executor(), [self = shared_from_this()] {
      self->close(protocol::close_code::policy, "too many control frames");
    });
  }

  // ---- times

  /// Arms the timer for the first thing that an open socket may be too slow with.
  void watch() { arm(pace_.next_look(now())); }

  void check_times() {
    if (paused_) {
      pace_.hear(now());  // silence of a socket that is not read says nothing
    } else {
      switch (pace_.look(now())) {
        case socket_pace::due::message_too_slow:
          close(protocol::close_code::policy, "a message took too long");
          return;
        case socket_pace::due::nothing_heard:
          close(protocol::close_code::going_away, "nothing was heard");
          return;
        case socket_pace::due::ping:
          if (!websocket_.next_layer().close_sent()) stream_->write(ping_frame);
          break;
        case socket_pace::due::nothing:
          break;
      }
    }
    watch();
  }

  void limit(std::chrono::milliseconds time) { arm(now() + time); }

  void arm(time_point due) {
    timer_.expires_at(due);
    timer_.async_wait([self = shared_from_this()](const boost::system::error_code& cancelled) {
      if (cancelled || self->timer_.expiry() > now()) return;
      if (self->state_ == state::open) {
        self->check_times();
      } else {
        self->abort();
      }
    });
  }

  // ---- ending

  void on_close_done(const boost::system::error_code& failed) {
    if (state_ == state::ended) return;
    if (failed && stream_is_gone(failed)) {
      abort();
      return;
    }
    state_ = state::ended;
    timer_.cancel();
    stream_->finish(host_->limits.closing, false, [self = shared_from_this()] { self->leave(); });
  }

  void tell_closed() {
    if (const auto events = std::exchange(events_, nullptr)) events->on_close();
  }

  void leave() {
    const auto self = shared_from_this();
    if (std::exchange(counted_, false)) host_->counters->sockets_open.fetch_sub(1);
    ticket_.reset();
    host_->remove(this);
  }

  static constexpr std::size_t read_bytes = std::size_t{16} * 1024;
  static constexpr std::size_t keep_bytes = std::size_t{8} * 1024;

  std::shared_ptr<peer_stream> stream_;
  upgrade_accepted accepted_;
  std::shared_ptr<connection_host> host_;
  std::unique_ptr<admission::ticket> ticket_;
  websocket::stream<beast_layer, false> websocket_;
  asio::steady_timer timer_;
  socket_pace pace_;
  beast::http::request<beast::http::empty_body> upgrade_request_;
  std::shared_ptr<socket_events> events_;  // from the answer to the upgrade until on_close

  state state_ = state::accepting;
  bool counted_ = false;  // among the open sockets
  bool paused_ = false;
  bool reading_ = false;
  bool held_ = false;  // a whole message waits in the buffer for the end of a pause
  beast::flat_buffer buffer_;
};

}  // namespace

void open_websocket(std::shared_ptr<peer_stream> stream, const http_request& request,
                    upgrade_accepted accepted, const std::shared_ptr<connection_host>& host,
                    std::unique_ptr<admission::ticket> ticket) {
  auto made = std::make_shared<beast_socket>(std::move(stream), std::move(accepted), host,
                                             std::move(ticket));
  host->add(made);
  made->start(request);
}

}  // namespace leasehold::server
