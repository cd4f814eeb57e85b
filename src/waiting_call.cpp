#include "src/waiting_call.hpp"

namespace leasehold::server {

waiting_call::waiting_call(const call_ptr& c)
    : call_(c), credential_(c->make_credential()), client_gone_(c->gone) {}

waiting_call::~waiting_call() {
  if (over_) return;
  // Its client went away, and whoever it waited for let it go.
  call_->api->post([api = call_->api, self = this] { api->sockets.forget(self); });
}

std::shared_ptr<waiting_call> waiting_call::begin(const call_ptr& c) {
  auto made = std::make_shared<waiting_call>(c);
  c->api->sockets.add(made);
  // It may have begun behind the calls that a drain has answered.
  if (c->api->shared.unready() == protocol::reason::draining) made->drain();
  return made;
}

void waiting_call::check_credential() {
  if (over_ || credential_.holds()) return;
  if (end()) call_->refuse(protocol::reason::unauthenticated, std::string(credential_ended));
}

void waiting_call::drain() {
  if (!over_ && end()) call_->refuse(protocol::reason::draining);
}

bool waiting_call::is_gone() const noexcept {
  return over_ || (client_gone_ != nullptr && *client_gone_);
}

bool waiting_call::end() {
  call_->api->sockets.remove(this);
  return !over_.exchange(true);
}

}  // namespace leasehold::server
