// From an accepted upgrade request to an open socket. Beast's WebSocket is behind this line only.
#pragma once

#include <memory>

#include "src/admission.hpp"
#include "src/connections.hpp"
#include "src/peer_stream.hpp"
#include "src/transport.hpp"

namespace leasehold::server {

/// Answers 101 and starts the socket's events; on the stream's thread. `ticket` counts the
/// connection until it is closed.
void open_websocket(std::shared_ptr<peer_stream> stream, const http_request& request,
                    upgrade_accepted accepted, const std::shared_ptr<connection_host>& host,
                    std::unique_ptr<admission::ticket> ticket);

}  // namespace leasehold::server
