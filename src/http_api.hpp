// The HTTP API of one thread: finds the route of a request, asks who is speaking, and lets it
// through or refuses it. What is behind a route stands in the routes_*.cpp.
#pragma once

#include <functional>
#include <memory>

#include "src/routes.hpp"
#include "src/transport.hpp"

namespace leasehold::server {

class http_api final : public http_handler {
 public:
  explicit http_api(std::shared_ptr<api_context> api) : api_(std::move(api)) {}

  void handle(http_request request, std::shared_ptr<const std::atomic<bool>> gone,
              std::function<void(http_response)> reply) override;
  upgrade_answer upgrade(const http_request& request) override;

 private:
  /// In the order of stream.md: the path, Origin, credential, role, quota. Null: it was refused.
  const route* admit(const call_ptr& c, bool upgrading);

  std::shared_ptr<api_context> api_;
};

}  // namespace leasehold::server
