#include "process_limits.hpp"

#include <filesystem>
#include <iterator>
#include <string>

#include "bench/process_cost.hpp"

namespace leasehold::e2e {

namespace {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool freed_memory_is_kept = true;
#else
constexpr bool freed_memory_is_kept = false;
#endif
}  // namespace

std::size_t descriptors_of(const live_server& server) {
  std::error_code gone;
  const std::filesystem::directory_iterator all("/proc/" + std::to_string(server.process()) + "/fd",
                                                gone);
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

std::size_t next_descriptor_of(const live_server& server) {
  const std::filesystem::path all("/proc/" + std::to_string(server.process()) + "/fd");
  std::size_t next = 0;
  while (std::filesystem::is_symlink(all / std::to_string(next))) ++next;
  return next;
}

process_room::process_room(const live_server& server)
    : server_(server),
      descriptors_(descriptors_of(server)),
      memory_(bench::memory_of(server.process())) {}

bool process_room::grew_at_most(std::int64_t bytes) const {
  return freed_memory_is_kept || growth() <= bytes;
}

std::int64_t process_room::growth() const { return bench::memory_of(server_.process()) - memory_; }

bool process_room::has_its_descriptors_back() const {
  return eventually([this] { return descriptors_of(server_) <= descriptors_; });
}

}  // namespace leasehold::e2e
