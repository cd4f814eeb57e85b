// The one unit of the client that knows Boost.Asio and Beast.
#include "stream_link.hpp"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/field.hpp>
#include <boost/beast/websocket/stream.hpp>
#include <charconv>
#include <chrono>
#include <deque>
#include <utility>

#include "leasehold/protocol/codec.hpp"

namespace leasehold::client {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace websocket = beast::websocket;
using boost::system::error_code;
using tcp = asio::ip::tcp;

constexpr std::size_t message_limit = std::size_t{1} << 20;
constexpr auto connect_patience = std::chrono::seconds(5);
constexpr auto handshake_patience = std::chrono::seconds(5);
/// The timer does not count suspend, so it never sleeps longer than this.
constexpr std::int64_t longest_nap_ms = 1000;

/// TCP, or TLS over it: chosen when it connects, so that there is one WebSocket type for both.
class plain_or_tls {
 public:
  using executor_type = beast::tcp_stream::executor_type;

  explicit plain_or_tls(asio::io_context& loop) : tcp_(loop) {}

  executor_type get_executor() noexcept { return tcp_.get_executor(); }
  beast::tcp_stream& tcp_layer() { return tcp_; }
  void use_tls(asio::ssl::context& trust) { tls_.emplace(tcp_, trust); }
  asio::ssl::stream<beast::tcp_stream&>* tls() { return tls_ ? &*tls_ : nullptr; }

  template <class Buffers, class Token>
  auto async_read_some(const Buffers& into, Token&& token) {
    return tls_ ? tls_->async_read_some(into, std::forward<Token>(token))
                : tcp_.async_read_some(into, std::forward<Token>(token));
  }
  template <class Buffers, class Token>
  auto async_write_some(const Buffers& from, Token&& token) {
    return tls_ ? tls_->async_write_some(from, std::forward<Token>(token))
                : tcp_.async_write_some(from, std::forward<Token>(token));
  }

  // Beast finds these by their argument. A stream that ends is closed at once: the WebSocket's own
  // close handshake has said everything before.
  friend void beast_close_socket(plain_or_tls& stream) {
    error_code ignored;
    stream.tcp_.socket().close(ignored);
  }
  [[maybe_unused]] friend void teardown(beast::role_type, plain_or_tls& stream, error_code& error) {
    stream.tcp_.socket().close(error);
  }
  template <class Handler>
  friend void async_teardown(beast::role_type, plain_or_tls& stream, Handler&& handler) {
    beast_close_socket(stream);
    asio::post(stream.get_executor(),
               [done = std::forward<Handler>(handler)]() mutable { done(error_code{}); });
  }

 private:
  beast::tcp_stream tcp_;
  std::optional<asio::ssl::stream<beast::tcp_stream&>> tls_;
};

using web_socket = websocket::stream<plain_or_tls, false>;

/// A sentence when a file cannot be used; then the context is good for nothing.
std::optional<std::string> set_up(asio::ssl::context& trust, const link_options& options) {
  error_code error;
  const auto fault = [&](std::string_view what, const std::string& file) {
    return "cannot use the " + std::string(what) + " in " + file + ": " + error.message();
  };
  SSL_CTX_set_min_proto_version(trust.native_handle(), TLS1_2_VERSION);
  trust.set_verify_mode(asio::ssl::verify_peer, error);
  if (options.ca_file.empty()) {
    trust.set_default_verify_paths(error);
    if (error) return fault("trusted certificates", "the system's directory");
  } else if (trust.load_verify_file(options.ca_file, error); error) {
    return fault("trusted certificates", options.ca_file);
  }
  if (options.cert_file.empty() != options.key_file.empty()) {
    return "a client certificate and its key belong together: name both files, or none";
  }
  if (options.cert_file.empty()) return std::nullopt;
  // Nobody is there to be asked for a passphrase.
  trust.set_password_callback([](std::size_t, auto) { return std::string(); }, error);
  if (trust.use_certificate_chain_file(options.cert_file, error); error) {
    return fault("client certificate", options.cert_file);
  }
  if (trust.use_private_key_file(options.key_file, asio::ssl::context::pem, error); error) {
    return fault("key of the client certificate", options.key_file);
  }
  return std::nullopt;
}

class beast_link final : public stream_link {
 public:
  beast_link(link_events& events, link_options options)
      : events_(events),
        options_(std::move(options)),
        timer_(loop_),
        trust_(asio::ssl::context::tls_client),
        trust_fault_(set_up(trust_, options_)) {}

  void open(const stream_address& where, const std::string& token, bool json) override;
  void send(std::string message) override;
  void close(std::uint16_t code) override;
  void wake_at(local_time when) override;
  void post(std::function<void()> task) override { asio::post(loop_, std::move(task)); }
  void run() override {
    const auto busy = asio::make_work_guard(loop_);
    loop_.run();
  }
  void stop() override { loop_.stop(); }

 private:
  /// One attempt to be connected. What is still under way when it is given up finds `over` set.
  struct attempt {
    explicit attempt(asio::io_context& loop) : names(loop), socket(loop) {}
    tcp::resolver names;
    web_socket socket;
    beast::flat_buffer read;
    websocket::response_type response;
    std::deque<std::string> unsent;
    bool open = false;
    bool writing = false;
    bool closing = false;
    bool over = false;
  };
  using attempt_ptr = std::shared_ptr<attempt>;

  void connect(const attempt_ptr& a, const tcp::resolver::results_type& found);
  void secure(const attempt_ptr& a);
  void greet(const attempt_ptr& a);
  void read(const attempt_ptr& a);
  void write(const attempt_ptr& a);
  void end(const attempt_ptr& a, const link_end& how);
  void refused(const attempt_ptr& a, error_code error);
  void read_failed(const attempt_ptr& a, error_code error);

  link_events& events_;
  link_options options_;
  asio::io_context loop_{1};
  asio::steady_timer timer_;
  asio::ssl::context trust_;
  std::optional<std::string> trust_fault_;  ///< why there can be no TLS
  stream_address where_;
  std::string token_;
  bool json_ = false;
  attempt_ptr current_;
};

void beast_link::open(const stream_address& where, const std::string& token, bool json) {
  where_ = where;
  token_ = token;
  json_ = json;
  current_ = std::make_shared<attempt>(loop_);
  current_->names.async_resolve(
      where.host, where.port,
      [this, a = current_](error_code error, const tcp::resolver::results_type& found) {
        if (a->over) return;
        if (error)
          return end(a, {.sentence = "cannot resolve " + where_.host + ": " + error.message()});
        connect(a, found);
      });
}

void beast_link::connect(const attempt_ptr& a, const tcp::resolver::results_type& found) {
  auto& tcp_layer = a->socket.next_layer().tcp_layer();
  tcp_layer.expires_after(connect_patience);
  tcp_layer.async_connect(found, [this, a](error_code error, const tcp::endpoint&) {
    if (a->over) return;
    if (error) {
      return end(a, {.sentence = "cannot connect to " + where_.host + ":" + where_.port + ": " +
                                 error.message()});
    }
    a->socket.next_layer().tcp_layer().socket().set_option(tcp::no_delay(true), error);
    where_.tls ? secure(a) : greet(a);
  });
}

void beast_link::secure(const attempt_ptr& a) {
  if (trust_fault_) return end(a, {.sentence = *trust_fault_});
  a->socket.next_layer().use_tls(trust_);
  auto& tls = *a->socket.next_layer().tls();
  error_code no_address;
  asio::ip::make_address(where_.host, no_address);
  if (no_address) SSL_set_tlsext_host_name(tls.native_handle(), where_.host.c_str());
  error_code unset;
  tls.set_verify_callback(asio::ssl::host_name_verification(where_.host), unset);
  if (unset) return end(a, {.sentence = "TLS cannot be set up: " + unset.message()});
  a->socket.next_layer().tcp_layer().expires_after(handshake_patience);
  tls.async_handshake(asio::ssl::stream_base::client, [this, a](error_code error) {
    if (a->over) return;
    if (error)
      return end(a, {.sentence = "TLS with " + where_.host + " failed: " + error.message()});
    greet(a);
  });
}

void beast_link::greet(const attempt_ptr& a) {
  a->socket.next_layer().tcp_layer().expires_never();
  a->socket.set_option(
      websocket::stream_base::timeout{handshake_patience, websocket::stream_base::none(), false});
  a->socket.read_message_max(message_limit);
  a->socket.binary(!json_);
  a->socket.auto_fragment(false);
  a->socket.set_option(websocket::stream_base::decorator([this](websocket::request_type& request) {
    request.set(beast::http::field::user_agent, options_.user_agent);
    if (!token_.empty()) request.set(beast::http::field::authorization, "Bearer " + token_);
    request.set(beast::http::field::sec_websocket_protocol,
                std::string(json_ ? protocol::subprotocol_json : protocol::subprotocol_protobuf));
  }));
  const auto host =
      where_.host.find(':') == std::string::npos ? where_.host : "[" + where_.host + "]";
  a->socket.async_handshake(a->response, host + ":" + where_.port, where_.target,
                            [this, a](error_code error) {
                              if (a->over) return;
                              if (error) return refused(a, error);
                              a->open = true;
                              events_.on_open();
                              if (!a->over) read(a);
                            });
}

void beast_link::refused(const attempt_ptr& a, error_code error) {
  link_end how{.sentence = "the coordinator did not take the connection: " + error.message()};
  if (error == websocket::error::upgrade_declined) {
    how.http_status = static_cast<int>(a->response.result_int());
    how.sentence =
        "the coordinator refused the connection with status " + std::to_string(how.http_status);
    const auto after = a->response[beast::http::field::retry_after];
    std::int64_t seconds = 0;
    std::from_chars(after.data(), after.data() + after.size(), seconds);
    how.retry_after = {std::clamp<std::int64_t>(seconds, 0, 3600) * 1000};
    how.is_standby = a->response.body().find(R"("reason":"standby")") != std::string::npos;
    how.active = std::string(a->response["Leasehold-Active"]);
  }
  end(a, how);
}

void beast_link::read(const attempt_ptr& a) {
  a->socket.async_read(a->read, [this, a](error_code error, std::size_t) {
    if (a->over) return;
    if (error) return read_failed(a, error);
    const auto bytes = a->read.cdata();
    events_.on_message({static_cast<const std::byte*>(bytes.data()), bytes.size()});
    a->read.consume(a->read.size());
    if (!a->over) read(a);
  });
}

void beast_link::read_failed(const attempt_ptr& a, error_code error) {
  link_end how{.sentence = "the connection ended: " + error.message()};
  if (error == websocket::error::closed) {
    how.close_code = a->socket.reason().code;
    how.sentence = "the coordinator closed the connection with " + std::to_string(how.close_code);
  }
  end(a, how);
}

void beast_link::send(std::string message) {
  if (!current_ || !current_->open || current_->closing) return;
  current_->unsent.push_back(std::move(message));
  if (!current_->writing) write(current_);
}

void beast_link::write(const attempt_ptr& a) {
  a->writing = true;
  a->socket.async_write(asio::buffer(a->unsent.front()), [this, a](error_code error, std::size_t) {
    if (a->over) return;
    a->writing = false;
    a->unsent.pop_front();
    if (error) return;  // the read hears of it too, and knows how it ended
    if (!a->unsent.empty()) return write(a);
    if (a->closing) {
      a->socket.async_close(websocket::close_code::normal, [this, a](error_code) {
        if (!a->over) end(a, {.close_code = 1000, .sentence = "closed"});
      });
    }
  });
}

void beast_link::close(std::uint16_t code) {
  if (!current_) return;
  const auto a = current_;
  if (!a->open || code == 0) return end(a, {.sentence = "given up"});
  if (std::exchange(a->closing, true)) return;
  if (a->writing) return;  // what is queued goes out first
  a->socket.async_close(websocket::close_reason(code), [this, a, code](error_code) {
    if (!a->over) end(a, {.close_code = code, .sentence = "closed"});
  });
}

void beast_link::end(const attempt_ptr& a, const link_end& how) {
  if (std::exchange(a->over, true)) return;
  a->names.cancel();
  error_code ignored;
  a->socket.next_layer().tcp_layer().socket().close(ignored);
  if (current_ == a) current_.reset();
  events_.on_end(how);
}

void beast_link::wake_at(local_time when) {
  const auto nap = std::clamp<std::int64_t>(when.ms - local_now().ms, 0, longest_nap_ms);
  timer_.expires_after(std::chrono::milliseconds(nap));
  timer_.async_wait([this](error_code error) {
    if (!error) events_.on_wake();
  });
}

}  // namespace

std::optional<std::string> find_link_fault(const link_options& options) {
  asio::ssl::context probe(asio::ssl::context::tls_client);
  return set_up(probe, options);
}

std::unique_ptr<stream_link> make_stream_link(link_events& events, link_options options) {
  return std::make_unique<beast_link>(events, std::move(options));
}

}  // namespace leasehold::client
