// HTTP/1.1 with one peer: requests read strictly and answered in their order, until one of them
// becomes a WebSocket.
#pragma once

#include <memory>
#include <string>

#include "src/admission.hpp"
#include "src/connections.hpp"
#include "src/peer_stream.hpp"

namespace leasehold::server {

/// Reads and answers until the peer goes, a limit is broken or the host ends it. On the stream's
/// thread.
void open_http(std::shared_ptr<peer_stream> stream, std::string peer,
               const std::shared_ptr<connection_host>& host,
               std::unique_ptr<admission::ticket> ticket);

}  // namespace leasehold::server
