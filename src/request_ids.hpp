// The ids that a request brings with it, and what is one.
#pragma once

#include <string>
#include <string_view>

#include "src/transport.hpp"

namespace leasehold::server {

/// 1 to 64 printable ASCII characters.
bool is_request_id(std::string_view text) noexcept;
/// A W3C traceparent.
bool is_trace_id(std::string_view text) noexcept;

/// What a refusal repeats, so that its caller finds the request again. Empty: the request has none.
struct request_ids {
  std::string request_id;
  std::string trace_id;
};

/// X-Request-Id and traceparent of the head; what is none is left out.
request_ids ids_of(const http_request& request);

}  // namespace leasehold::server
