#include "src/admission.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <utility>

namespace leasehold::server {

admission::ticket::ticket(std::shared_ptr<admission> from, std::string address, bool exempt)
    : from_(std::move(from)), address_(std::move(address)), exempt_(exempt) {}

admission::ticket::~ticket() {
  established();
  if (place_) place_->fetch_sub(1);
  from_->leave();
}

void admission::ticket::established() {
  if (std::exchange(handshaking_, false)) from_->leave_handshake(address_, exempt_);
}

void admission::ticket::count_in(std::shared_ptr<std::atomic<std::int64_t>> place) {
  place_ = std::move(place);
  place_->fetch_add(1);
}

admission::admission(const net_limits& limits)
    : connections_wanted_(limits.connections),
      reserved_descriptors_(limits.reserved_descriptors),
      handshake_cap_(limits.handshakes),
      handshakes_per_address_(limits.handshakes_per_address) {}

admission::outcome admission::admit(const std::string& address, bool loopback) {
  const std::lock_guard lock{mutex_};
  if (has_no_room()) return {nullptr, refusal::full};
  if (!loopback) {
    std::size_t& of_address = by_address_[address];
    if (of_address >= handshakes_per_address_) return {nullptr, refusal::address};
    ++of_address;
  }
  ++connections_;
  ++handshakes_;
  return {std::make_unique<ticket>(shared_from_this(), address, loopback), {}};
}

std::size_t admission::connections() const {
  const std::lock_guard lock{mutex_};
  return connections_;
}

bool admission::full() const {
  const std::lock_guard lock{mutex_};
  return has_no_room();
}

bool admission::has_no_room() const {
  return handshakes_ >= handshake_cap_ ||
         connections_ >= connection_cap(connections_wanted_, reserved_descriptors_);
}

void admission::leave_handshake(const std::string& address, bool exempt) {
  const std::lock_guard lock{mutex_};
  --handshakes_;
  if (exempt) return;
  const auto of_address = by_address_.find(address);
  if (--of_address->second == 0) by_address_.erase(of_address);
}

bool admission::wait_until_empty(std::chrono::steady_clock::time_point until) {
  std::unique_lock lock{mutex_};
  return emptied_.wait_until(lock, until, [this] { return connections_ == 0; });
}

void admission::leave() {
  const std::lock_guard lock{mutex_};
  if (--connections_ == 0) emptied_.notify_all();
}

std::size_t connection_cap(std::size_t wanted, std::size_t reserved_descriptors) {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == RLIM_INFINITY) return wanted;
  const auto open_files = static_cast<std::size_t>(files.rlim_cur);
  const std::size_t left =
      open_files > reserved_descriptors ? open_files - reserved_descriptors : std::size_t{1};
  return std::max(std::min(wanted, left), std::size_t{1});
}

}  // namespace leasehold::server
