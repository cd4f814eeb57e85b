#include "tools/api.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <thread>

#include "tools/arguments.hpp"
#include "tools/output.hpp"
#include "tools/terminal.hpp"

namespace leasehold::tools {
namespace {

namespace json = boost::json;
using std::chrono::milliseconds;

constexpr std::size_t longest_token = 4096;
/// How long coordinators that are all standbys are asked again: as long as a take-over takes with
/// the term that they have unless it was chosen, and some time for the recovery.
constexpr milliseconds take_over_patience{15'000};
constexpr milliseconds first_pause{200};
constexpr milliseconds longest_pause{2000};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

/// The token's file: named, else the one that leaseholdd's first start wrote into its data
/// directory. Empty: there is none, and calls go out without a credential.
std::string token_path(const command_line& line) {
  if (!line.token_file.empty()) return line.token_file;
  // A client certificate says who calls; somebody else's token beside it would be refused.
  if (!line.cert_file.empty()) return "";
  const auto path = default_data_directory() + "/operator.token";
  std::error_code ignored;
  return std::filesystem::exists(path, ignored) ? path : "";
}

/// Nothing when the file cannot be read or does not look like a token.
std::optional<std::string> read_token(const std::string& path) {
  std::ifstream file(path);
  std::string token;
  if (read_line(file, token, longest_token) != line_read::whole || token.empty()) return {};
  while (!token.empty() && (token.back() == '\r' || token.back() == ' ')) token.pop_back();
  const bool clean =
      std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c < '\x7f'; });
  return clean && !token.empty() ? std::optional(token) : std::nullopt;
}

exit_code code_of(const transport_failure& failure) {
  return failure.is_by_options ? exit_code::malformed : exit_code::unreachable;
}

exit_code code_of(int status) {
  if (status == 401 || status == 403) return exit_code::forbidden;
  if (status == 503 || status == 502 || status == 504) return exit_code::unreachable;
  return exit_code::refused;
}

}  // namespace

std::string problem_sentence(const http_answer& answer, const json::object& problem) {
  const auto reason = text_in(problem, "reason");
  auto detail = text_in(problem, "detail");
  if (detail.empty()) detail = text_in(problem, "title");
  std::string out = reason.empty() ? fmt::format("status {}", answer.status) : reason;
  if (!detail.empty()) out += ": " + detail;
  const auto& lease = object_in(problem, "lease");
  if (!lease.empty()) {
    out += fmt::format(" (now {}, generation {})", cell_in(lease, "state"),
                       cell_in(lease, "generation"));
  }
  if (!answer.retry_after.empty()) out += fmt::format(" Try again in {} s.", answer.retry_after);
  return out;
}

std::string default_data_directory() {
  if (auto data = variable("LEASEHOLD_DATA"); !data.empty()) return data;
  auto home = variable("XDG_DATA_HOME");
  if (home.empty()) home = variable("HOME") + "/.local/share";
  return home + "/leasehold";
}

std::string bearer_token(const command_line& line, std::string& fault) {
  const auto path = token_path(line);
  if (path.empty()) return "";
  auto token = read_token(path);
  if (!token)
    fault = fmt::format("cannot read a token from {}: name its file with --token-file", path);
  return token.value_or("");
}

exit_code complain(exit_code code, std::string_view sentence) {
  print_error("leasehold: {}\n", printable(sentence));
  return code;
}

api::api(const command_line& line, client_options options)
    : line_(line), client_(std::move(options)) {}

exit_code fill_connection(const command_line& line, client_options& options, std::string& fault) {
  auto all = parse_endpoints(line.url);
  if (all.empty()) {
    fault = fmt::format(
        "--url \"{}\" is not of the form http://HOST:PORT, nor up to {} of them "
        "with commas between",
        line.url, most_endpoints);
    return exit_code::malformed;
  }
  options.where = all.front();
  options.others.assign(all.begin() + 1, all.end());
  options.ca_file = line.ca_file;
  options.cert_file = line.cert_file;
  options.key_file = line.key_file;
  options.token = bearer_token(line, fault);
  return fault.empty() ? exit_code::ok : exit_code::forbidden;
}

exit_code api::open(const command_line& line, const std::function<exit_code(api&)>& use) {
  client_options options;
  std::string fault;
  const auto code = fill_connection(line, options, fault);
  if (code != exit_code::ok) return complain(code, fault);
  api opened(line, std::move(options));
  return use(opened);
}

std::variant<http_answer, transport_failure> api::ask(const http_call& what,
                                                      milliseconds extra_wait) {
  const auto end = std::chrono::steady_clock::now() + take_over_patience;
  std::random_device chance;
  for (milliseconds longest = first_pause;; longest = std::min(2 * longest, longest_pause)) {
    auto came = client_.call(what, extra_wait);
    const auto* answer = std::get_if<http_answer>(&came);
    // Somebody is there who may soon be the active one.
    const bool waits = client_.has_others() && !tolerates_absence_ && answer != nullptr &&
                       says_not_active(*answer);
    if (!waits || std::chrono::steady_clock::now() >= end) return came;
    std::this_thread::sleep_for(first_pause / 2 +
                                milliseconds(chance() % static_cast<unsigned>(longest.count())));
  }
}

exit_code api::get(const std::string& target, const on_object& on_ok,
                   std::chrono::milliseconds extra_wait) {
  http_call what;
  what.target = target;
  return finish(ask(what, extra_wait), on_ok);
}

exit_code api::post(const std::string& target, const json::object& body, const on_object& on_ok) {
  http_call what;
  what.method = "POST";
  what.target = target;
  what.body = json::serialize(body);
  what.may_repeat = body.contains("request_id");
  return finish(ask(what), on_ok);
}

exit_code api::lines(const std::string& target, const std::string& accept, const on_line& sink) {
  std::int64_t ignored = 0;
  return read_lines(target, accept, sink, ignored);
}

exit_code api::page(const std::string& target, const on_line& sink, std::int64_t& next) {
  return read_lines(target, "application/x-ndjson", sink, next);
}

exit_code api::read_lines(const std::string& target, const std::string& accept, const on_line& sink,
                          std::int64_t& next) {
  http_call what;
  what.target = target;
  what.accept = accept;
  what.on_line = sink;
  const auto outcome = ask(what);
  if (const auto* failed = std::get_if<transport_failure>(&outcome)) {
    return complain(code_of(*failed), failed->sentence);
  }
  const auto& answer = std::get<http_answer>(outcome);
  next = answer.next_row;
  return answer.status == 200 ? exit_code::ok : refuse(answer);
}

exit_code api::listen(const std::string& target, const on_line& sink) {
  const auto end = client_.listen(target, sink);
  if (const auto* failed = std::get_if<transport_failure>(&end)) {
    return complain(code_of(*failed), failed->sentence);
  }
  if (const auto* refused = std::get_if<http_answer>(&end)) return refuse(*refused);
  const auto& closed = std::get<socket_closed>(end);
  if (closed.code == 1000) return exit_code::ok;
  return complain(exit_code::unreachable,
                  fmt::format("the coordinator closed the stream with code {}: {}", closed.code,
                              printable(closed.reason)));
}

exit_code api::finish(const std::variant<http_answer, transport_failure>& outcome,
                      const on_object& on_ok) {
  if (const auto* failed = std::get_if<transport_failure>(&outcome)) {
    if (tolerates_absence_ && !failed->is_by_options) return exit_code::unreachable;
    return complain(code_of(*failed), failed->sentence);
  }
  const auto& answer = std::get<http_answer>(outcome);
  if (answer.status >= 300) return refuse(answer);
  boost::system::error_code error;
  const auto body = json::parse(answer.body, error);
  if (error || !body.is_object()) {
    return complain(exit_code::unreachable,
                    "the answer is not a JSON object: is this a coordinator?");
  }
  return on_ok(body.get_object());
}

exit_code api::refuse(const http_answer& answer) {
  if (tolerates_absence_ && code_of(answer.status) == exit_code::unreachable) {
    return exit_code::unreachable;
  }
  boost::system::error_code error;
  const auto body = json::parse(answer.body, error);
  const bool readable = !error && body.is_object();
  const auto problem = readable ? body.get_object() : json::object();
  if (line_.json && readable) print_json(problem);
  return complain(code_of(answer.status), problem_sentence(answer, problem));
}

query& query::add(std::string_view key, std::string_view value) {
  if (value.empty()) return *this;
  target_ += fmt::format("{}{}={}", first_ ? '?' : '&', key, url_encoded(value));
  first_ = false;
  return *this;
}

std::string job_path(std::string_view job, std::string_view suffix) {
  return fmt::format("/v1/jobs/{}{}", url_encoded(job), suffix);
}

std::string fresh_request_id() {
  std::random_device source;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", source(), source(), source(), source());
}

}  // namespace leasehold::tools
