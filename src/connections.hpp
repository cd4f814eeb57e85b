// The connections of one thread, so that a stop reaches them all.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "leasehold/protocol/frame.hpp"
#include "src/net_limits.hpp"
#include "src/tls_context.hpp"
#include "src/transport.hpp"

namespace leasehold::server {

/// One peer, before or after its upgrade; on one thread.
class connection {
 public:
  virtual ~connection() = default;
  /// Ends it in good order, within its own bounds: a request that is being answered gets its
  /// answer, a socket its close handshake.
  virtual void end(protocol::close_code code, const std::string& why) = 0;
  /// Ends it now.
  virtual void abort() = 0;
};

/// What the connections of one thread share. Lives as long as the last of them.
struct connection_host {
  std::shared_ptr<http_handler> handler;
  net_limits limits;
  std::shared_ptr<net_counters> counters;
  std::shared_ptr<const live_tls> tls;  ///< null: connections are plain
  std::unordered_map<const connection*, std::shared_ptr<connection>> open;
  bool ending = false;  ///< answers say Connection: close, nothing new begins

  void add(std::shared_ptr<connection> what) {
    counters->connections_open.fetch_add(1);
    open.emplace(what.get(), std::move(what));
  }
  void remove(const connection* what) {
    if (open.erase(what) > 0) counters->connections_open.fetch_sub(1);
  }
  /// A copy: ending one removes it.
  [[nodiscard]] std::vector<std::shared_ptr<connection>> all() const {
    std::vector<std::shared_ptr<connection>> found;
    found.reserve(open.size());
    for (const auto& [key, value] : open) found.push_back(value);
    return found;
  }
};

}  // namespace leasehold::server
