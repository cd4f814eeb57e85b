// A synchronous HTTP/1.1 client for the coordinator's API, over TCP or TLS: one connection, kept
// open between requests, to the one of several coordinators that is the active one. The only
// interface; what is behind it lives in http_client.cpp alone.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace leasehold::tools {

/// Where a coordinator answers, read from http://HOST[:PORT] or https://HOST[:PORT].
struct endpoint {
  bool tls = false;
  std::string host;
  std::string port;
  friend bool operator==(const endpoint&, const endpoint&) = default;
};

/// Nothing when `url` is not of that form; paths, queries and user information are not taken.
std::optional<endpoint> parse_endpoint(std::string_view url);

inline constexpr std::size_t most_endpoints = 16;
/// The same for one to most_endpoints of them with commas between.
std::vector<endpoint> parse_endpoints(std::string_view urls);

/// Percent-encodes what stands in a path segment or a query value.
std::string url_encoded(std::string_view text);

/// Why there is no answer: one sentence for people.
struct transport_failure {
  std::string sentence;
  bool is_by_options =
      false;  ///< a file that an option names is no use: another try is none either
};

struct http_answer {
  int status = 0;
  std::string content_type;
  std::string retry_after;    ///< as sent; empty when it was not
  std::string active;         ///< of a standby: HOST:PORT of the active coordinator; else empty
  std::int64_t next_row = 0;  ///< Leasehold-Next-Row, the row after a page of evidence; 0: none
  std::string body;           ///< empty when the body went to a line sink
};

/// The end of a WebSocket. Code 1000 is an end in good order: ours, or the other side's.
struct socket_closed {
  int code = 1000;
  std::string reason;
};

struct http_call {
  std::string method = "GET";
  std::string target;  ///< path and query, encoded
  std::string accept = "application/json";
  std::string body;  ///< sent as application/json when not empty
  /// It has one effect however often it arrives, so that another coordinator may be asked though
  /// the first may have done it. So is every GET.
  bool may_repeat = false;
  /// Hears each line of a successful body as it arrives; false ends the reading.
  std::function<bool(std::string_view line)> on_line;
};

struct client_options {
  endpoint where;
  std::vector<endpoint> others;  ///< of the same store: asked when the one before does not serve
  bool goes_elsewhere = true;    ///< also where only a standby says that somebody serves
  std::string token;             ///< bearer token; empty: none is sent
  std::string ca_file;           ///< trusted certificates for TLS (PEM); empty: the system's
  std::string cert_file;         ///< client certificate for TLS (PEM), with key_file; empty: none
  std::string key_file;          ///< its key (PEM, no passphrase)
  std::chrono::milliseconds connect_timeout{5000};
  std::chrono::milliseconds answer_timeout{30000};
  std::size_t body_limit = std::size_t{64} * 1024 * 1024;
  /// Once it is readable, a call that waits fails at once; -1: none. It must stay open.
  int stop_descriptor = -1;
};

/// Whether an answer says that this coordinator decided nothing and another one may serve.
bool says_not_active(const http_answer& answer);

/// One connection to one coordinator at a time. Not for use from two threads.
class http_client {
 public:
  explicit http_client(client_options options);
  ~http_client();
  http_client(http_client&&) noexcept;
  http_client& operator=(http_client&&) noexcept;

  /// Sends the call and reads its answer. A connection that the other side closed while it was idle
  /// is opened again once. `extra_wait` is added to the answer timeout: for calls that wait there.
  /// Where there are several coordinators each is asked once, the one that a standby names first,
  /// until one serves or that time is over; the next call begins with the last one that did, or
  /// with one that was not asked.
  std::variant<http_answer, transport_failure> call(const http_call& what,
                                                    std::chrono::milliseconds extra_wait = {});

  [[nodiscard]] bool has_others() const noexcept { return all_.size() > 1; }

  /// How long a connection that is opened from now on may take.
  void connect_within(std::chrono::milliseconds longest) noexcept {
    options_.connect_timeout = longest;
  }

  /// Opens a WebSocket at `target` and hands on each text message; `on_message` returning false
  /// closes it. Returns the answer when the upgrade was refused.
  using socket_end = std::variant<socket_closed, http_answer, transport_failure>;
  socket_end listen(const std::string& target,
                    const std::function<bool(std::string_view message)>& on_message);

 private:
  struct connection;
  using outcome = std::variant<http_answer, transport_failure>;
  struct tried {
    outcome what;
    bool was_sent = false;  ///< the coordinator may have done it
  };
  tried call_here(const http_call& what, std::chrono::milliseconds extra_wait);
  /// Goes to the coordinator that is to be asked after this one; false: `asked` has them all.
  bool move_on(const outcome& after, const std::vector<endpoint>& asked);
  void move_to(const endpoint& where);
  socket_end listen_here(const std::string& target,
                         const std::function<bool(std::string_view message)>& on_message);

  client_options options_;  // `where` is the coordinator that is asked now
  std::vector<endpoint> all_;
  std::unique_ptr<connection> open_;
};

}  // namespace leasehold::tools
