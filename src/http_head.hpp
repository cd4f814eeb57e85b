// What a request's head must be before anything else looks at it: one reading for everybody on the
// way, so that no proxy and no handler can take it for two requests or for somebody else's.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "src/net_limits.hpp"
#include "src/transport.hpp"

namespace leasehold::server {

/// Why a head is refused. The connection closes after the answer: where the next request begins is
/// not certain.
struct head_refused {
  int status = 400;
  std::string sentence;
};

/// `minor_version`: of HTTP/1. Checks sizes (431), the target, and each field that must be unique.
std::optional<head_refused> check_head(const http_request& head, int minor_version,
                                       const net_limits& limits);

/// The head asks for a WebSocket. Any other Upgrade is ignored, as HTTP allows.
bool asks_for_websocket(const http_request& head);
/// What RFC 6455 4.2.1 asks of such a head; 426 when only the version is another.
std::optional<head_refused> check_upgrade(const http_request& head, int minor_version);

/// True when `list`, comma-separated, has `token`, in any case.
bool has_token(std::string_view list, std::string_view token);

}  // namespace leasehold::server
