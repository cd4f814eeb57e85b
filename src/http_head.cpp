#include "src/http_head.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace leasehold::server {
namespace {

// Fields that decide where a request ends, whom it is for or who sends it.
constexpr std::array<std::string_view, 13> unique_fields{"authorization",
                                                         "content-length",
                                                         "content-type",
                                                         "cookie",
                                                         "expect",
                                                         "host",
                                                         "origin",
                                                         "sec-websocket-key",
                                                         "sec-websocket-version",
                                                         "transfer-encoding",
                                                         "upgrade",
                                                         "x-forwarded-for",
                                                         "traceparent"};

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

bool equal_in_any_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::ptrdiff_t count_of(const http_request& head, std::string_view name) {
  return std::count_if(head.headers.begin(), head.headers.end(),
                       [name](const auto& field) { return field.first == name; });
}

std::optional<head_refused> check_sizes(const http_request& head, const net_limits& limits) {
  if (head.headers.size() > limits.fields) {
    return head_refused{431, "The request has more than " + std::to_string(limits.fields) +
                                 " header fields; send fewer."};
  }
  if (head.target.size() > limits.target_bytes) {
    return head_refused{431, "The request target is longer than " +
                                 std::to_string(limits.target_bytes) + " bytes; shorten it."};
  }
  return std::nullopt;
}

std::optional<head_refused> check_target(std::string_view target) {
  const bool printable = std::all_of(target.begin(), target.end(),
                                     [](char c) { return c > ' ' && c < 0x7f && c != '#'; });
  if (target.empty() || target.front() != '/' || !printable) {
    return head_refused{400,
                        "The request target must be a path that begins with / in printable ASCII."};
  }
  return std::nullopt;
}

std::optional<head_refused> check_framing(const http_request& head, int minor_version) {
  const std::string_view length = head.header("content-length");
  if (length.find_first_not_of("0123456789") != std::string_view::npos) {
    return head_refused{400, "Content-Length is one number of bytes."};
  }
  const std::string_view coding = head.header("transfer-encoding");
  if (count_of(head, "transfer-encoding") == 0) return std::nullopt;
  if (minor_version < 1 || !equal_in_any_case(trimmed(coding), "chunked")) {
    return head_refused{400,
                        "The only transfer coding that is understood is chunked, in HTTP/1.1."};
  }
  if (count_of(head, "content-length") > 0) {
    return head_refused{400, "A request has Content-Length or Transfer-Encoding, not both."};
  }
  return std::nullopt;
}

/// 16 bytes in base64: 21 free characters, one of four, "==".
bool is_key(std::string_view key) {
  const auto is_digit = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '+' || c == '/';
  };
  return key.size() == 24 && key.ends_with("==") &&
         std::all_of(key.begin(), key.begin() + 21, is_digit) &&
         std::string_view{"AQgw"}.find(key[21]) != std::string_view::npos;
}

}  // namespace

std::optional<head_refused> check_head(const http_request& head, int minor_version,
                                       const net_limits& limits) {
  if (auto refused = check_sizes(head, limits)) return refused;
  for (const std::string_view name : unique_fields) {
    if (count_of(head, name) > 1) {
      return head_refused{400, "The header field " + std::string{name} + " occurs more than once."};
    }
  }
  if (minor_version >= 1 && trimmed(head.header("host")).empty()) {
    return head_refused{400, "An HTTP/1.1 request names its Host."};
  }
  if (auto refused = check_target(head.target)) return refused;
  return check_framing(head, minor_version);
}

bool asks_for_websocket(const http_request& head) {
  return has_token(head.header("upgrade"), "websocket");
}

std::optional<head_refused> check_upgrade(const http_request& head, int minor_version) {
  const std::string_view length = head.header("content-length");
  const bool has_body =
      (!length.empty() && length != "0") || count_of(head, "transfer-encoding") > 0;
  if (head.method != "GET" || minor_version < 1 || has_body ||
      !has_token(head.header("connection"), "upgrade")) {
    return head_refused{
        400,
        "A WebSocket is asked for by an HTTP/1.1 GET without a body and with Connection: Upgrade."};
  }
  if (head.header("sec-websocket-version") != "13") {
    return head_refused{426, "The only WebSocket version that is understood is 13."};
  }
  if (!is_key(head.header("sec-websocket-key"))) {
    return head_refused{400, "Sec-WebSocket-Key must be 16 bytes in base64."};
  }
  return std::nullopt;
}

bool has_token(std::string_view list, std::string_view token) {
  while (!list.empty()) {
    const auto comma = std::min(list.find(','), list.size());
    if (equal_in_any_case(trimmed(list.substr(0, comma)), token)) return true;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

}  // namespace leasehold::server
