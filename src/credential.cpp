#include "src/credential.hpp"

#include <vector>

namespace leasehold::server {

bool credential::holds() {
  const std::int64_t version = registry_->version();
  if (version == version_) return true;
  if (!registry_->current()->still_holds(who_, by_)) return false;
  version_ = version;
  return true;
}

std::vector<std::shared_ptr<credentialed>> credentialed_sockets::all() const {
  std::vector<std::shared_ptr<credentialed>> found;
  found.reserve(open_.size());
  for (const auto& [key, socket] : open_) {
    if (auto one = socket.lock()) found.push_back(std::move(one));
  }
  return found;
}

void credentialed_sockets::check_all() const {
  for (const auto& one : all()) one->check_credential();
}

void credentialed_sockets::drain_all() const {
  for (const auto& one : all()) one->drain();
}

}  // namespace leasehold::server
