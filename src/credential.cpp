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

void credentialed_sockets::check_all() {
  // A copy: one that is closed may be removed meanwhile.
  std::vector<std::shared_ptr<credentialed>> all;
  all.reserve(open_.size());
  for (const auto& [key, socket] : open_) {
    if (auto one = socket.lock()) all.push_back(std::move(one));
  }
  for (const auto& one : all) one->check_credential();
}

}  // namespace leasehold::server
