#include "src/transport.hpp"

namespace leasehold::server {

std::string_view http_request::header(std::string_view name) const {
  for (const auto& [field, value] : headers) {
    if (field == name) return value;
  }
  return {};
}

}  // namespace leasehold::server
