#include "src/http_answer.hpp"

#include <boost/beast/http/status.hpp>
#include <boost/json.hpp>
#include <utility>

#include "leasehold/protocol/reason.hpp"

namespace leasehold::server {
namespace {

namespace http = boost::beast::http;

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
    case 503:
      return protocol::reason::not_ready;
    default:
      return protocol::reason::none;
  }
}

protocol::reason_class class_of(int status, protocol::reason why) {
  if (why != protocol::reason::none) return protocol::find_reason(why)->refusal_class;
  return status == 408 ? protocol::reason_class::retryable : protocol::reason_class::permanent;
}

}  // namespace

http_response refusal(int status, std::string_view sentence, request_ids ids) {
  const auto why = reason_of(status);
  const auto outcome = class_of(status, why);
  const std::string word{protocol::word(why)};
  const bool has_word = why != protocol::reason::none;
  boost::json::object body{
      {"type", has_word ? "urn:leasehold:reason:" + word : "about:blank"},
      {"title", std::string_view{http::obsolete_reason(static_cast<http::status>(status))}},
      {"status", status},
      {"detail", sentence},
      {"class", protocol::word(outcome)},
      {"request_id", std::move(ids.request_id)},
      {"trace_id", std::move(ids.trace_id)}};
  if (has_word) body["reason"] = word;
  http_response answer{status, {{"content-type", "application/problem+json"}}, ""};
  if (status == 426) answer.headers.emplace_back("sec-websocket-version", "13");
  if (outcome == protocol::reason_class::retryable) {
    answer.headers.emplace_back("retry-after", "1");
    body["retry_after_ms"] = 1000;
  }
  answer.body = boost::json::serialize(body) + "\n";
  return answer;
}

std::string answer_text(const http_response& answer, bool keep_alive, bool body) {
  const auto status = static_cast<http::status>(answer.status);
  std::string text = "HTTP/1.1 " + std::to_string(answer.status) + ' ' +
                     std::string{http::obsolete_reason(status)} + "\r\n";
  for (const auto& [name, value] : answer.headers) {
    // A value with a line end would begin a field, or an answer, of somebody else's making.
    if (value.find_first_of(std::string_view{"\r\n\0", 3}) != std::string::npos) continue;
    text.append(name).append(": ").append(value).append("\r\n");
  }
  const bool has_body = answer.status >= 200 && answer.status != 204 && answer.status != 304;
  if (has_body) text += "content-length: " + std::to_string(answer.body.size()) + "\r\n";
  if (!keep_alive) text += "connection: close\r\n";
  text += "\r\n";
  if (has_body && body) text += answer.body;
  return text;
}

}  // namespace leasehold::server
