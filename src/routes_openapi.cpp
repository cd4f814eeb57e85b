// The description of the HTTP API for programs: docs/openapi.json, which is part of the program.
#include "leasehold_openapi.hpp"
#include "src/routes.hpp"

namespace leasehold::server {

void serve_openapi(const call_ptr& c) {
  if (auto fault = c->query.fault()) return c->refuse(*fault);
  http_response out;
  out.headers = {{"Content-Type", "application/json"}, {"Cache-Control", "no-cache"}};
  out.body = openapi_text;
  c->reply(std::move(out));
}

}  // namespace leasehold::server
