// The coordinator's HTTP API as subcommands use it: JSON in, JSON out, and every refusal or failure
// told in one way and turned into one exit code.
#pragma once

#include <boost/json/object.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>

#include "tools/http_client.hpp"
#include "tools/json_fields.hpp"
#include "tools/subcommands.hpp"

namespace leasehold::tools {

/// Prints "leasehold: SENTENCE" to standard error and yields the code.
exit_code complain(exit_code code, std::string_view sentence);

/// Where leaseholdd keeps its data when nothing else is said: LEASEHOLD_DATA, else leasehold under
/// XDG_DATA_HOME or ~/.local/share.
std::string default_data_directory();

/// The bearer token that calls go out with; empty: none is sent. Sets `fault` when its file cannot
/// be read.
std::string bearer_token(const command_line& line, std::string& fault);

/// Where the coordinator is and the token for it. Unless the answer is ok, `fault` says what is
/// wrong.
exit_code fill_connection(const command_line& line, client_options& options, std::string& fault);

/// A refusal for people: its reason, what is behind it, where the lease stands, when to try again.
std::string problem_sentence(const http_answer& answer, const boost::json::object& problem);

/// Reads and writes through one connection. Every call returns what `on_ok` returned, or has
/// complained and returns the code that fits.
class api {
 public:
  using on_object = std::function<exit_code(const boost::json::object& body)>;
  using on_line = std::function<bool(std::string_view line)>;

  /// Reads the token and hands the API to `use`.
  static exit_code open(const command_line& line, const std::function<exit_code(api&)>& use);

  exit_code get(const std::string& target, const on_object& on_ok,
                std::chrono::milliseconds extra_wait = {});
  exit_code post(const std::string& target, const boost::json::object& body,
                 const on_object& on_ok);
  /// Hands on each line of the answer.
  exit_code lines(const std::string& target, const std::string& accept, const on_line& sink);
  /// As lines() for a page of evidence; `next` becomes the row that the next page begins with.
  exit_code page(const std::string& target, const on_line& sink, std::int64_t& next);
  /// Hands on each message of a WebSocket until it ends in good order, or `sink` wants no more.
  exit_code listen(const std::string& target, const on_line& sink);

  [[nodiscard]] const command_line& line() const noexcept { return line_; }
  /// Says nothing when nobody answers or the coordinator is not ready: the caller asks again.
  void tolerate_absence() noexcept { tolerates_absence_ = true; }

 private:
  api(const command_line& line, client_options options);
  /// Asks until one of several coordinators serves, for as long as a take-over may take.
  std::variant<http_answer, transport_failure> ask(const http_call& what,
                                                   std::chrono::milliseconds extra_wait = {});
  exit_code finish(const std::variant<http_answer, transport_failure>& outcome,
                   const on_object& on_ok);
  exit_code refuse(const http_answer& answer);
  exit_code read_lines(const std::string& target, const std::string& accept, const on_line& sink,
                       std::int64_t& next);

  const command_line& line_;
  http_client client_;
  bool tolerates_absence_ = false;
};

/// A query string being built; empty values are left out.
class query {
 public:
  explicit query(std::string path) : target_(std::move(path)) {}
  query& add(std::string_view key, std::string_view value);
  [[nodiscard]] const std::string& target() const noexcept { return target_; }

 private:
  std::string target_;
  bool first_ = true;
};

/// "/v1/jobs/JOB" with the suffix, for instance ":cancel" or "/evidence".
std::string job_path(std::string_view job, std::string_view suffix = {});

/// A request id of 128 random bits: makes a call that is sent twice one request.
std::string fresh_request_id();

}  // namespace leasehold::tools
