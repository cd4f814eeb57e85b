#include "src/http_answer.hpp"

#include <boost/beast/http/status.hpp>

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
    default:
      return protocol::reason::none;
  }
}

}  // namespace

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
