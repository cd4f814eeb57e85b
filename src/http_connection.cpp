#include "src/http_connection.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/status.hpp>
#include <boost/beast/http/string_body.hpp>
#include <optional>
#include <utility>

#include "leasehold/protocol/reason.hpp"
#include "src/http_head.hpp"
#include "src/websocket.hpp"

namespace leasehold::server {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;

constexpr std::size_t read_bytes = std::size_t{8} * 1024;

std::string lower_case(std::string_view text) {
  std::string lower{text};
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return lower;
}

/// A field that goes on in the next line: the parser joins them, others do not.
bool has_folded_line(std::string_view head) {
  return head.find("\r\n ") != std::string_view::npos ||
         head.find("\r\n\t") != std::string_view::npos;
}

/// The protocol's word for what a request did wrong before the API saw it, where it has one.
protocol::reason reason_of(int status) {
  switch (status) {
    case 400:
      return protocol::reason::malformed;
    case 413:
    case 431:
      return protocol::reason::too_large;
    case 429:
      return protocol::reason::rate_limited;
    default:
      return protocol::reason::none;
  }
}

class http_connection final : public connection,
                              public std::enable_shared_from_this<http_connection> {
 public:
  http_connection(std::shared_ptr<peer_stream> stream, std::string peer,
                  std::shared_ptr<connection_host> host, std::unique_ptr<admission::ticket> ticket)
      : stream_(std::move(stream)),
        peer_(std::move(peer)),
        host_(std::move(host)),
        ticket_(std::move(ticket)),
        timer_(stream_->get_executor()) {}

  void start() {
    stream_->when_failed([this] { abort(); });
    begin_request();
    limit(host_->limits.head);
    read();
  }

  void end(protocol::close_code, const std::string&) override {
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
  enum class phase { head, body, answering, writing, finished };
  using parser = http::request_parser<http::string_body>;

  void begin_request() {
    phase_ = phase::head;
    begun_ = false;
    head_bytes_ = 0;
    request_ = {};
    gone_ = std::make_shared<bool>(ended_);
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(host_->limits.head_bytes));
    parser_->body_limit(host_->limits.body_bytes);
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
    if (buffer_.size() >= room) return;
    reading_ = true;
    stream_->async_read_some(
        buffer_.prepare(std::min(read_bytes, room - buffer_.size())),
        [self = shared_from_this()](const boost::system::error_code& failed, std::size_t bytes) {
          self->reading_ = false;
          self->on_read(failed, bytes);
        });
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
      boost::system::error_code failed;
      const std::size_t used = parser_->put(buffer_.data(), failed);
      const bool folded = phase_ == phase::head &&
                          has_folded_line({static_cast<const char*>(buffer_.data().data()), used});
      buffer_.consume(used);
      if (phase_ == phase::head) head_bytes_ += used;
      if (failed == http::error::need_more && !is_too_long_a_tail()) return;
      if (failed || folded) {
        refuse_unreadable(failed);
        return;
      }
      if (phase_ == phase::head && parser_->is_header_done() && !take_head()) return;
      if (phase_ == phase::body && parser_->is_done()) dispatch();
    }
  }

  /// Of a chunked body the parser keeps the line of a chunk, and the fields behind the last one,
  /// until they are whole; it knows no limit of them.
  [[nodiscard]] bool is_too_long_a_tail() const {
    return phase_ == phase::body && buffer_.size() > host_->limits.head_bytes;
  }

  void refuse_unreadable(const boost::system::error_code& why) {
    const net_limits& limits = host_->limits;
    if (why == http::error::need_more) {
      refuse(431, "The line of a chunk, or the fields behind the body, are larger than " +
                      std::to_string(limits.head_bytes) + " bytes.");
    } else if (why == http::error::header_limit) {
      refuse(431,
             "The request head is larger than " + std::to_string(limits.head_bytes) + " bytes.");
    } else if (why == http::error::body_limit) {
      refuse(413,
             "The request body is larger than " + std::to_string(limits.body_bytes) + " bytes.");
    } else {
      refuse(400, "The request is not HTTP/1.1.");
    }
  }

  /// The head is complete: trailers that may follow a chunked body never become part of it.
  bool take_head() {
    const auto& message = parser_->get();
    minor_version_ = static_cast<int>(message.version() % 10);
    request_.method = std::string{message.method_string()};
    request_.target = std::string{message.target()};
    request_.peer = peer_;
    for (const auto& field : message) {
      request_.headers.emplace_back(lower_case(field.name_string()), std::string{field.value()});
    }
    keep_alive_ = parser_->keep_alive();
    if (head_bytes_ > host_->limits.head_bytes) {
      refuse_unreadable(http::error::header_limit);
      return false;
    }
    if (const auto refused = check_head(request_, minor_version_, host_->limits)) {
      refuse(refused->status, refused->sentence);
      return false;
    }
    if (has_token(request_.header("expect"), "100-continue") && !parser_->is_done()) {
      stream_->write("HTTP/1.1 100 Continue\r\n\r\n");
    }
    phase_ = phase::body;
    parser_->eager(true);
    limit(host_->limits.body);
    return true;
  }

  void dispatch() {
    timer_.cancel();
    if (ticket_) ticket_->established();
    host_->counters->requests.fetch_add(1, std::memory_order_relaxed);
    if (asks_for_websocket(request_)) {
      upgrade();
      return;
    }
    request_.body = std::move(parser_->get().body());
    phase_ = phase::answering;
    head_only_ = request_.method == "HEAD";
    const auto gone = gone_;
    const std::weak_ptr<http_connection> self = shared_from_this();
    host_->handler->handle(std::move(request_), gone,
                           [self, number = ++request_number_](const http_response& answer) {
                             if (const auto here = self.lock()) here->on_answer(number, answer);
                           });
  }

  void on_answer(std::int64_t number, const http_response& answer) {
    if (phase_ != phase::answering || number != request_number_) return;
    const bool more_may_come = !ended_ || buffer_.size() > 0;
    keep_alive_ = keep_alive_ && more_may_come && !host_->ending;
    stream_->write(answer_text(answer, keep_alive_, !head_only_));
    if (!keep_alive_) {
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
    if (const auto refused = check_upgrade(request_, minor_version_)) {
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
    auto decision = host_->handler->upgrade(request_);
    if (auto* refused = std::get_if<upgrade_refused>(&decision)) {
      answer_and_finish(refused->response);
      return;
    }
    phase_ = phase::finished;
    stream_->when_failed(nullptr);
    open_websocket(stream_, request_, std::get<upgrade_accepted>(std::move(decision)), host_,
                   std::move(ticket_));
    leave();
  }

  void refuse(int status, std::string_view sentence) {
    host_->counters->requests_refused.fetch_add(1, std::memory_order_relaxed);
    answer_and_finish(refusal(status, sentence));
  }

  void answer_and_finish(const http_response& answer) {
    stream_->write(answer_text(answer, false, request_.method != "HEAD"));
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
  const std::string peer_;
  std::shared_ptr<connection_host> host_;
  std::unique_ptr<admission::ticket> ticket_;
  asio::steady_timer timer_;
  boost::beast::flat_buffer buffer_;
  std::optional<parser> parser_;

  phase phase_ = phase::head;
  bool begun_ = false;  // the first byte of the request is here
  bool reading_ = false;
  bool ended_ = false;  // the peer sends no more
  bool keep_alive_ = true;
  bool head_only_ = false;
  int minor_version_ = 1;
  std::size_t head_bytes_ = 0;
  std::int64_t request_number_ = 0;
  http_request request_;
  std::shared_ptr<bool> gone_;
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

http_response refusal(int status, std::string_view sentence) {
  const auto why = reason_of(status);
  const bool has_word = why != protocol::reason::none;
  const std::string word{protocol::word(why)};
  http_response answer{status, {{"content-type", "application/problem+json"}}, ""};
  answer.body =
      "{\"type\":\"" + (has_word ? "urn:leasehold:reason:" + word : "about:blank") +
      "\",\"title\":\"" + std::string{http::obsolete_reason(static_cast<http::status>(status))} +
      "\",\"status\":" + std::to_string(status) + ",\"detail\":\"" + std::string{sentence} + '"' +
      (has_word ? ",\"reason\":\"" + word + '"' : "") + "}\n";
  if (status == 426) answer.headers.emplace_back("sec-websocket-version", "13");
  return answer;
}

std::string answer_text(const http_response& answer, bool keep_alive, bool body) {
  const auto status = static_cast<http::status>(answer.status);
  std::string text = "HTTP/1.1 " + std::to_string(answer.status) + ' ' +
                     std::string{http::obsolete_reason(status)} + "\r\n";
  for (const auto& [name, value] : answer.headers) {
    // A value with a line end would begin a field, or an answer, of somebody else's making.
    if (value.find_first_of(std::string_view{"\r\n\0", 3}) != std::string::npos) continue;
    text += name + ": " + value + "\r\n";
  }
  const bool has_body = answer.status >= 200 && answer.status != 204 && answer.status != 304;
  if (has_body) text += "content-length: " + std::to_string(answer.body.size()) + "\r\n";
  if (!keep_alive) text += "connection: close\r\n";
  text += "\r\n";
  if (has_body && body) text += answer.body;
  return text;
}

}  // namespace leasehold::server
