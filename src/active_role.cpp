#include "src/active_role.hpp"

namespace leasehold::server {

std::string_view word(server_role role) noexcept {
  switch (role) {
    case server_role::standby:
      return "standby";
    case server_role::recovering:
      return "recovering";
    case server_role::active:
      return "active";
  }
  return "";
}

protocol::reason active_role::why_silent() const noexcept {
  if (may_answer()) return protocol::reason::none;
  return role() == server_role::recovering ? protocol::reason::not_ready
                                           : protocol::reason::standby;
}

server_role active_role::role() const noexcept {
  const std::lock_guard lock(mutex_);
  return ended_ ? server_role::standby : role_;
}

std::string active_role::active() const {
  const std::lock_guard lock(mutex_);
  return active_;
}

void active_role::serve_for_ever() {
  const std::lock_guard lock(mutex_);
  role_ = server_role::active;
  until_ms_ = for_ever;
  publish();
}

void active_role::take(std::int64_t epoch, const std::string& own_address, bool over) {
  const std::lock_guard lock(mutex_);
  if (over) takeovers_ += 1;
  role_ = server_role::recovering;
  epoch_ = epoch;
  active_ = own_address;
  publish();
}

void active_role::serve() {
  const std::lock_guard lock(mutex_);
  role_ = server_role::active;
  publish();
}

void active_role::extend(std::int64_t until_boot_ms) {
  const std::lock_guard lock(mutex_);
  until_ms_ = until_boot_ms;
  publish();
}

void active_role::end() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  publish();
}

void active_role::watch(std::int64_t epoch, const std::string& active) {
  const std::lock_guard lock(mutex_);
  epoch_ = epoch;
  active_ = active;
}

void active_role::publish() {
  const bool answers = role_ == server_role::active && !ended_;
  answers_until_ms_.store(answers ? until_ms_ : 0, std::memory_order_release);
}

}  // namespace leasehold::server
