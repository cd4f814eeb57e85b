#include "src/http_connection.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "src/http_answer.hpp"
#include "src/http_head.hpp"
#include "src/request_reader.hpp"
#include "src/websocket.hpp"

namespace leasehold::server {
namespace {

namespace asio = boost::asio;

constexpr std::size_t read_bytes = std::size_t{8} * 1024;

class http_connection final : public connection,
                              public std::enable_shared_from_this<http_connection> {
 public:
  http_connection(std::shared_ptr<peer_stream> stream, std::string peer,
                  std::shared_ptr<connection_host> host, std::unique_ptr<admission::ticket> ticket)
      : stream_(std::move(stream)),
        host_(std::move(host)),
        ticket_(std::move(ticket)),
        timer_(stream_->get_executor()),
        reader_(host_->limits, std::move(peer)) {}

  void start() {
    stream_->when_failed([this] { abort(); });
    begin_request();
    limit(host_->limits.head);
    if (stream_->tls() == nullptr) {
      read();
      return;
    }
    phase_ = phase::securing;
    stream_->shake_hands([self = shared_from_this()](bool worked) { self->on_handshake(worked); });
  }

  void end(protocol::close_code, const std::string&) override {
    if (phase_ == phase::securing) abort();
    if (phase_ == phase::head && !begun_) finish();
    // Otherwise the answer that is under way closes the connection: the host is ending.
  }

  void abort() override {
    if (std::exchange(phase_, phase::finished) == phase::finished) {
      stream_->close();  // leaves, when the last bytes were still being sent
      return;
    }
    *gone_ = true;
    timer_.cancel();
    stream_->close();
    leave();
  }

 private:
  enum class phase { securing, head, body, answering, writing, finished };

  void begin_request() {
    phase_ = phase::head;
    begun_ = false;
    gone_ = std::make_shared<std::atomic<bool>>(ended_);
    reader_.begin();
  }

  void on_handshake(bool worked) {
    if (phase_ != phase::securing) return;
    if (!worked) {
      give_up_handshake();
      return;
    }
    host_->counters->tls_handshakes.fetch_add(1, std::memory_order_relaxed);
    certificate_ = stream_->tls()->peer_names();
    phase_ = phase::head;
    limit(host_->limits.head);
    read();
  }

  void give_up_handshake() {
    const tls_channel& tls = *stream_->tls();
    // Who connects and leaves without a word only looks whether somebody listens.
    if (!tls.heard_nothing()) count_failure(tls.fault());
    if (!tls.met_plain_http()) {
      abort();
      return;
    }
    stream_->go_on_plain();
    phase_ = phase::head;
    refuse(400, "This port speaks TLS only; ask with https:// or wss://.");
  }

  void count_failure(const char* why) {
    host_->counters->tls_failures.fetch_add(1, std::memory_order_relaxed);
    host_->counters->tls_failure.store(why, std::memory_order_relaxed);
  }

  void limit(std::chrono::milliseconds time) {
    timer_.expires_after(time);
    timer_.async_wait([self = shared_from_this()](const boost::system::error_code& cancelled) {
      if (!cancelled && self->timer_.expiry() <= asio::steady_timer::clock_type::now()) {
        self->too_slow();
      }
    });
  }

  void too_slow() {
    if (phase_ == phase::finished) return;
    if (phase_ == phase::securing) count_failure("the handshake took too long");
    if (begun_ && (phase_ == phase::head || phase_ == phase::body)) {
      refuse(408, "The request was not complete in time.");
    } else {
      abort();
    }
  }

  /// Keeps one read under way, also while an answer is awaited: that is how a peer's leaving is
  /// seen.
  void read() {
    if (reading_ || ended_ || phase_ == phase::finished) return;
    const std::size_t room = host_->limits.head_bytes + read_bytes;
    if (buffer_.size() >= room) {
      // Without a read the peer's leaving is not seen, so whoever waits counts as gone.
      if (phase_ == phase::answering) {
        *gone_ = true;
        limit(host_->limits.idle);
      }
      return;
    }
    reading_ = true;
    const auto into = buffer_.prepare(std::min(read_bytes, room - buffer_.size()));
    stream_->async_read_some(into, [self = shared_from_this(), into](
                                       const boost::system::error_code& failed, std::size_t bytes) {
      self->reading_ = false;
      self->move_up(into.data(), bytes);
      self->on_read(failed, bytes);
    });
  }

  /// A request that was taken out of the buffer while the read was under way may have left it
  /// empty, so that it begins again at its front: what was read is behind that.
  void move_up(const void* from, std::size_t bytes) {
    const auto place = buffer_.prepare(bytes);
    if (bytes > 0 && place.data() != from) std::memmove(place.data(), from, bytes);
  }

  void on_read(const boost::system::error_code& failed, std::size_t bytes) {
    if (phase_ == phase::finished) {
      stream_->read_ended(failed);
      return;
    }
    if (failed) {
      on_end(failed == asio::error::eof);
      return;
    }
    host_->counters->bytes_read.fetch_add(static_cast<std::int64_t>(bytes),
                                          std::memory_order_relaxed);
    buffer_.commit(bytes);
    if (phase_ == phase::head || phase_ == phase::body) parse();
    read();
  }

  /// The peer sends no more. A request that it sent whole is still answered, should it listen.
  void on_end(bool in_good_order) {
    ended_ = true;
    *gone_ = true;
    if (!in_good_order) {
      abort();
    } else if (phase_ == phase::answering) {
      limit(host_->limits.idle);
    } else if (phase_ != phase::writing) {
      finish();
    }
  }

  void parse() {
    if (buffer_.size() > 0 && !begun_) {
      begun_ = true;
      limit(host_->limits.head);
    }
    while (buffer_.size() > 0 && (phase_ == phase::head || phase_ == phase::body)) {
      switch (reader_.take(buffer_)) {
        case request_reader::found::too_little:
          return;
        case request_reader::found::head:
          phase_ = phase::body;
          if (reader_.waits_to_continue()) stream_->write("HTTP/1.1 100 Continue\r\n\r\n");
          limit(host_->limits.body);
          break;
        case request_reader::found::whole:
          dispatch();
          break;
        case request_reader::found::fault:
          refuse(reader_.fault().status, reader_.fault().sentence);
          return;
      }
    }
  }

  void dispatch() {
    timer_.cancel();
    if (ticket_) ticket_->established();
    host_->counters->requests.fetch_add(1, std::memory_order_relaxed);
    if (asks_for_websocket(reader_.request())) {
      upgrade();
      return;
    }
    phase_ = phase::answering;
    head_only_ = reader_.request().method == "HEAD";
    const auto gone = gone_;
    const std::weak_ptr<http_connection> self = shared_from_this();
    auto request = reader_.release();
    request.certificate = certificate_;
    host_->handler->handle(std::move(request), gone,
                           [self, number = ++request_number_](const http_response& answer) {
                             if (const auto here = self.lock()) here->on_answer(number, answer);
                           });
  }

  void on_answer(std::int64_t number, const http_response& answer) {
    if (phase_ != phase::answering || number != request_number_) return;
    const bool more_may_come = !ended_ || buffer_.size() > 0;
    const bool keep_alive = reader_.keep_alive() && more_may_come && !host_->ending;
    stream_->write(answer_text(answer, keep_alive, !head_only_));
    if (!keep_alive) {
      finish();
      return;
    }
    phase_ = phase::writing;
    if (stream_->queued_bytes() > host_->limits.answer_bytes) {
      limit(host_->limits.idle);
      stream_->when_drained([this] { next_request(); });
    } else {
      // Not from here: a handler that answers at once would nest as deep as requests are pipelined.
      asio::post(stream_->get_executor(), [self = shared_from_this()] { self->next_request(); });
    }
  }

  void next_request() {
    if (phase_ != phase::writing) return;
    begin_request();
    limit(host_->limits.idle);
    if (!host_->ending) parse();
    const bool waits = phase_ == phase::head || phase_ == phase::body;
    if (waits && (ended_ || host_->ending)) {
      finish();
    } else {
      read();
    }
  }

  void upgrade() {
    if (const auto refused = check_upgrade(reader_.request(), reader_.minor_version())) {
      refuse(refused->status, refused->sentence);
      return;
    }
    // A read under way would take the socket's first bytes.
    if (buffer_.size() > 0 || reading_) {
      refuse(400,
             "An upgrade request is sent alone: after the answers before it, and with nothing "
             "behind it.");
      return;
    }
    auto request = reader_.request();
    request.certificate = certificate_;
    auto decision = host_->handler->upgrade(request);
    if (auto* refused = std::get_if<upgrade_refused>(&decision)) {
      answer_and_finish(refused->response);
      return;
    }
    phase_ = phase::finished;
    stream_->when_failed(nullptr);
    open_websocket(stream_, reader_.request(), std::get<upgrade_accepted>(std::move(decision)),
                   host_, std::move(ticket_));
    leave();
  }

  void refuse(int status, std::string_view sentence) {
    host_->counters->requests_refused.fetch_add(1, std::memory_order_relaxed);
    answer_and_finish(refusal(status, sentence, ids_of(reader_.request())));
  }

  void answer_and_finish(const http_response& answer) {
    stream_->write(answer_text(answer, false, reader_.request().method != "HEAD"));
    finish();
  }

  void finish() {
    if (phase_ == phase::finished) return;
    phase_ = phase::finished;
    *gone_ = true;
    timer_.cancel();
    const net_limits& limits = host_->limits;
    const bool to_send = stream_->queued_bytes() > 0;
    stream_->finish(to_send ? limits.closing : std::chrono::milliseconds{0}, reading_,
                    [self = shared_from_this()] { self->leave(); });
  }

  void leave() {
    const auto self = shared_from_this();
    ticket_.reset();
    host_->remove(this);
  }

  std::shared_ptr<peer_stream> stream_;
  std::shared_ptr<connection_host> host_;
  std::unique_ptr<admission::ticket> ticket_;
  asio::steady_timer timer_;
  boost::beast::flat_buffer buffer_;
  request_reader reader_;
  std::vector<std::string> certificate_;  // names of the peer's

  phase phase_ = phase::head;
  bool begun_ = false;  // the first byte of the request is here
  bool reading_ = false;
  bool ended_ = false;  // the peer sends no more
  bool head_only_ = false;
  std::int64_t request_number_ = 0;
  std::shared_ptr<std::atomic<bool>> gone_;
};

}  // namespace

void open_http(std::shared_ptr<peer_stream> stream, std::string peer,
               const std::shared_ptr<connection_host>& host,
               std::unique_ptr<admission::ticket> ticket) {
  auto made = std::make_shared<http_connection>(std::move(stream), std::move(peer), host,
                                                std::move(ticket));
  host->add(made);
  made->start();
}

}  // namespace leasehold::server
