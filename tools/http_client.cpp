// The one file of the program that speaks HTTP; its sockets are those of timed_stream.cpp.
#include "tools/http_client.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/websocket.hpp>
#include <boost/beast/websocket/ssl.hpp>
#include <boost/json/parse.hpp>
#include <boost/url/parse.hpp>
#include <charconv>

#include "tools/timed_stream.hpp"

namespace leasehold::tools {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;

using request = http::request<http::string_body>;

std::string host_field(const endpoint& where) {
  const bool is_v6 = where.host.find(':') != std::string::npos;
  return is_v6 ? fmt::format("[{}]:{}", where.host, where.port)
               : fmt::format("{}:{}", where.host, where.port);
}

request request_of(const client_options& options, const http_call& what) {
  request out;
  out.method_string(what.method);
  out.target(what.target);
  out.version(11);
  out.set(http::field::host, host_field(options.where));
  out.set(http::field::user_agent, "leasehold/" LEASEHOLD_VERSION);
  out.set(http::field::accept, what.accept);
  if (!options.token.empty()) out.set(http::field::authorization, "Bearer " + options.token);
  if (!what.body.empty()) out.set(http::field::content_type, "application/json");
  out.body() = what.body;
  out.prepare_payload();
  return out;
}

template <class Header>
http_answer answer_of(const Header& header) {
  http_answer out;
  out.status = static_cast<int>(header.result_int());
  out.content_type = std::string(header[http::field::content_type]);
  out.retry_after = std::string(header[http::field::retry_after]);
  out.active = std::string(header["Leasehold-Active"]);
  const auto next = header["Leasehold-Next-Row"];
  std::from_chars(next.data(), next.data() + next.size(), out.next_row);
  return out;
}

/// Cuts what arrives into lines; the end of the body ends the last one.
class line_cutter {
 public:
  explicit line_cutter(const std::function<bool(std::string_view)>& sink) : sink_(sink) {}
  bool take(std::string_view bytes) {
    pending_.append(bytes);
    std::size_t begin = 0;
    for (std::size_t end; (end = pending_.find('\n', begin)) != std::string::npos;
         begin = end + 1) {
      if (!sink_(std::string_view(pending_).substr(begin, end - begin))) return false;
    }
    pending_.erase(0, begin);
    return true;
  }
  void finish() {
    if (!pending_.empty()) sink_(pending_);
  }

 private:
  const std::function<bool(std::string_view)>& sink_;
  std::string pending_;
};

}  // namespace

struct http_client::connection {
  timed_connection line;
  beast::flat_buffer buffer;

  std::variant<http_answer, error_code> exchange(const client_options& options,
                                                 const http_call& what,
                                                 std::chrono::milliseconds extra_wait) {
    error_code error;
    line.stream().plain().expires_at(clock::now() + options.answer_timeout + extra_wait);
    http::write(line.stream(), request_of(options, what), error);
    if (error) return error;
    http::response_parser<http::string_body> parser;
    parser.body_limit(options.body_limit);
    http::read_header(line.stream(), buffer, parser, error);
    if (error) return error;
    auto answer = answer_of(parser.get());
    const bool by_line = what.on_line && answer.status == 200;
    if (by_line) {
      error = read_lines(parser, options, what);
    } else {
      http::read(line.stream(), buffer, parser, error);
      answer.body = std::move(parser.get().body());
    }
    if (error) return error;
    keep_alive_ = parser.keep_alive();
    return answer;
  }

  [[nodiscard]] bool reusable() const { return keep_alive_; }

 private:
  bool keep_alive_ = false;

  error_code read_lines(http::response_parser<http::string_body>& header,
                        const client_options& options, const http_call& what) {
    http::response_parser<http::buffer_body> parser(std::move(header));
    parser.body_limit(boost::none);
    line_cutter lines(what.on_line);
    std::array<char, 65536> chunk{};
    error_code error;
    while (!parser.is_done()) {
      parser.get().body().data = chunk.data();
      parser.get().body().size = chunk.size();
      line.stream().plain().expires_at(clock::now() + options.answer_timeout);
      http::read(line.stream(), buffer, parser, error);
      if (error == http::error::need_buffer) error = {};
      if (error) return error;
      if (!lines.take({chunk.data(), chunk.size() - parser.get().body().size})) {
        keep_alive_ = false;
        return {};
      }
    }
    lines.finish();
    keep_alive_ = parser.keep_alive();
    return {};
  }
};

http_client::http_client(client_options options) : options_(std::move(options)) {
  all_.push_back(options_.where);
  all_.insert(all_.end(), options_.others.begin(), options_.others.end());
}
http_client::~http_client() = default;
http_client::http_client(http_client&&) noexcept = default;
http_client& http_client::operator=(http_client&&) noexcept = default;

namespace {

/// The other side has looked at our certificate, or at the want of one, and said no.
bool is_refused_certificate(const error_code& error) {
  if (error.category() != asio::error::get_ssl_category()) return false;
  switch (ERR_GET_REASON(static_cast<unsigned long>(error.value()))) {
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_SSLV3_ALERT_NO_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
    case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
      return true;
    default:
      return false;
  }
}

transport_failure failure_of(const client_options& options, const error_code& error) {
  const auto url =
      fmt::format("{}://{}", options.where.tls ? "https" : "http", host_field(options.where));
  if (error == asio::error::timed_out) return {fmt::format("{} did not answer in time", url)};
  if (error == http::error::end_of_stream) {
    return {fmt::format("{} closed the connection before it answered", url)};
  }
  if (error.category() == asio::error::get_ssl_category() &&
      ERR_GET_REASON(static_cast<unsigned long>(error.value())) ==
          SSL_R_CERTIFICATE_VERIFY_FAILED) {
    return {fmt::format(
        "{} shows no certificate that is made for {} and signed by who is trusted: name its "
        "signer's certificate with --ca-file",
        url, options.where.host)};
  }
  if (is_refused_certificate(error)) {
    return {options.cert_file.empty()
                ? fmt::format("{} wants a client certificate ({}): name one with --cert-file and "
                              "--key-file",
                              url, error.message())
                : fmt::format("{} refused the client certificate in {}: {}", url, options.cert_file,
                              error.message())};
  }
  return {fmt::format("cannot talk to {}: {}", url, error.message())};
}

/// The same for what happened on `line`, which may know more.
transport_failure failure_of(const client_options& options, const error_code& error,
                             timed_connection& line) {
  if (!line.file_fault().empty()) return {line.file_fault(), true};
  return failure_of(options, line.cause_of(error));
}

std::string reason_of(const http_answer& answer) {
  boost::system::error_code error;
  const auto body = boost::json::parse(answer.body, error);
  if (error || !body.is_object()) return {};
  const auto* reason = body.get_object().if_contains("reason");
  return reason != nullptr && reason->is_string() ? std::string(reason->get_string())
                                                  : std::string();
}

/// Whether no other coordinator is to be asked.
bool is_final(const std::variant<http_answer, transport_failure>& came) {
  const auto* answer = std::get_if<http_answer>(&came);
  if (answer == nullptr) return std::get<transport_failure>(came).is_by_options;
  constexpr int unavailable = 503;
  return answer->status != unavailable ||
         !(says_not_active(*answer) || reason_of(*answer) == "unknown_outcome");
}

/// What a connection shows that was closed by the other side while nobody used it.
bool was_closed_while_idle(const error_code& error) {
  return error == http::error::end_of_stream || is_closed_by_peer(error);
}

}  // namespace

http_client::tried http_client::call_here(const http_call& what,
                                          std::chrono::milliseconds extra_wait) {
  const bool was_open = open_ != nullptr;
  if (!was_open) {
    open_ = std::make_unique<connection>();
    if (const auto error = open_->line.open(options_)) {
      auto failure = failure_of(options_, error, open_->line);
      open_.reset();
      return {std::move(failure), false};
    }
  }
  auto done = open_->exchange(options_, what, extra_wait);
  if (const auto* error = std::get_if<error_code>(&done)) {
    auto failure = failure_of(options_, *error, open_->line);
    open_.reset();
    if (was_open && was_closed_while_idle(*error)) return call_here(what, extra_wait);
    return {std::move(failure), true};
  }
  if (!open_->reusable()) open_.reset();
  return {std::get<http_answer>(std::move(done)), true};
}

std::variant<http_answer, transport_failure> http_client::call(
    const http_call& what, std::chrono::milliseconds extra_wait) {
  const auto end = clock::now() + options_.answer_timeout + extra_wait;
  bool has_lines = false;
  http_call asked_for = what;
  if (what.on_line) {
    asked_for.on_line = [&](std::string_view line) {
      has_lines = true;
      return what.on_line(line);
    };
  }
  std::vector<endpoint> asked;
  std::optional<outcome> best;
  for (;;) {
    asked.push_back(options_.where);
    auto [came, was_sent] = call_here(asked_for, extra_wait);
    const bool failed = std::holds_alternative<transport_failure>(came);
    if (is_final(came)) return came;
    // An answer says more than the want of one.
    if (!best || !failed) best = came;
    const bool may_repeat = what.may_repeat || what.method == "GET";
    const bool may_be_done = failed ? was_sent : !says_not_active(std::get<http_answer>(came));
    const bool goes_on = move_on(came, asked) && !has_lines && (may_repeat || !may_be_done);
    if (!goes_on || clock::now() >= end) return *best;
  }
}

bool http_client::move_on(const outcome& after, const std::vector<endpoint>& asked) {
  const auto is_new = [&](const endpoint& e) {
    return std::find(asked.begin(), asked.end(), e) == asked.end();
  };
  const auto* answer = std::get_if<http_answer>(&after);
  if (answer != nullptr && options_.goes_elsewhere) {
    // Named without a scheme: it is spoken to as the one that names it.
    const auto named =
        parse_endpoint((options_.where.tls ? "https://" : "http://") + answer->active);
    if (named && is_new(*named)) {
      move_to(*named);
      return true;
    }
  }
  const auto here = std::find(all_.begin(), all_.end(), options_.where);
  std::size_t at = here == all_.end() ? 0 : static_cast<std::size_t>(here - all_.begin()) + 1;
  for (std::size_t i = 0; i < all_.size(); ++i, ++at) {
    if (!is_new(all_[at % all_.size()])) continue;
    move_to(all_[at % all_.size()]);
    return true;
  }
  move_to(all_[at % all_.size()]);
  return false;
}

void http_client::move_to(const endpoint& where) {
  if (where != options_.where) open_.reset();
  options_.where = where;
}

http_client::socket_end http_client::listen(
    const std::string& target, const std::function<bool(std::string_view)>& on_message) {
  std::vector<endpoint> asked;
  bool has_begun = false;
  const auto heard = [&](std::string_view message) {
    has_begun = true;
    return on_message(message);
  };
  for (;;) {
    asked.push_back(options_.where);
    auto end = listen_here(target, heard);
    if (has_begun || std::holds_alternative<socket_closed>(end)) return end;
    const auto* refused = std::get_if<http_answer>(&end);
    const outcome came =
        refused != nullptr ? outcome(*refused) : outcome(std::get<transport_failure>(end));
    if (is_final(came) || !move_on(came, asked)) return end;
  }
}

http_client::socket_end http_client::listen_here(
    const std::string& target, const std::function<bool(std::string_view)>& on_message) {
  timed_connection line;
  if (const auto error = line.open(options_)) return failure_of(options_, error, line);
  beast::websocket::stream<any_stream&> socket(line.stream());
  socket.set_option(
      beast::websocket::stream_base::decorator([this](beast::websocket::request_type& r) {
        r.set(http::field::user_agent, "leasehold/" LEASEHOLD_VERSION);
        if (!options_.token.empty()) r.set(http::field::authorization, "Bearer " + options_.token);
      }));
  error_code error;
  beast::websocket::response_type refused;
  socket.handshake(refused, host_field(options_.where), target, error);
  if (error == beast::websocket::error::upgrade_declined) {
    auto answer = answer_of(refused);
    answer.body = refused.body();
    return answer;
  }
  if (error) return failure_of(options_, error, line);
  // Rows come when something happens; silence is not a failure here.
  line.stream().plain().expires_at(clock::now() + std::chrono::hours(24 * 365));
  beast::flat_buffer message;
  for (;;) {
    socket.read(message, error);
    if (error == beast::websocket::error::closed) {
      const auto& why = socket.reason();
      return socket_closed{why.code, std::string(why.reason.data(), why.reason.size())};
    }
    if (error) return failure_of(options_, error);
    if (!on_message({static_cast<const char*>(message.data().data()), message.size()})) break;
    message.consume(message.size());
  }
  line.stream().plain().expires_at(clock::now() + std::chrono::seconds(1));
  socket.close(beast::websocket::close_code::normal, error);
  return socket_closed{};
}

std::optional<endpoint> parse_endpoint(std::string_view url) {
  const auto parsed = boost::urls::parse_uri(url);
  if (!parsed || parsed->host().empty() || parsed->has_userinfo() || parsed->has_query()) return {};
  if (!parsed->encoded_path().empty() && parsed->encoded_path() != "/") return {};
  const bool tls = parsed->scheme() == "https";
  if (!tls && parsed->scheme() != "http") return {};
  std::string host = parsed->host_type() == boost::urls::host_type::ipv6
                         ? parsed->host_ipv6_address().to_string()
                         : parsed->host();
  std::string port(parsed->port());
  if (port.empty()) port = tls ? "443" : "80";
  std::uint16_t number = 0;
  const auto read = std::from_chars(port.data(), port.data() + port.size(), number);
  if (read.ec != std::errc{} || read.ptr != port.data() + port.size() || number == 0) {
    return std::nullopt;
  }
  return endpoint{tls, std::move(host), std::move(port)};
}

std::vector<endpoint> parse_endpoints(std::string_view urls) {
  std::vector<endpoint> all;
  while (all.size() < most_endpoints) {
    const auto comma = urls.find(',');
    const auto read = parse_endpoint(urls.substr(0, comma));
    if (!read) return {};
    all.push_back(*read);
    if (comma == urls.npos) return all;
    urls.remove_prefix(comma + 1);
  }
  return {};
}

bool says_not_active(const http_answer& answer) {
  constexpr int unavailable = 503;
  if (answer.status != unavailable) return false;
  const auto reason = reason_of(answer);
  return reason == "standby" || reason == "not_ready" || reason == "draining";
}

std::string url_encoded(std::string_view text) {
  static constexpr std::string_view unreserved = "-._~";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool stays =
        byte < 0x80 && ((std::isalnum(byte) != 0) || unreserved.find(c) != unreserved.npos);
    out += stays ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return out;
}

}  // namespace leasehold::tools
