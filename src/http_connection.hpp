// HTTP/1.1 with one peer: requests read strictly and answered in their order, until one of them
// becomes a WebSocket.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "src/admission.hpp"
#include "src/connections.hpp"
#include "src/peer_stream.hpp"

namespace leasehold::server {

/// Reads and answers until the peer goes, a limit is broken or the host ends it. On the stream's
/// thread.
void open_http(std::shared_ptr<peer_stream> stream, std::string peer,
               const std::shared_ptr<connection_host>& host,
               std::unique_ptr<admission::ticket> ticket);

/// Refuses what the API never saw, in the shape of its errors: with a reason of the protocol where
/// it has one for the status.
http_response refusal(int status, std::string_view sentence);

/// The bytes of an answer. `body`: false for an answer to HEAD, which has the same head.
std::string answer_text(const http_response& answer, bool keep_alive, bool body);

}  // namespace leasehold::server
