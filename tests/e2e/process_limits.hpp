// What the server's process holds: descriptors and memory, before something and after it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "live_server.hpp"

namespace leasehold::e2e {

std::size_t descriptors_of(const live_server& server);
/// The number that its next descriptor would have: with this as its limit it has none left.
std::size_t next_descriptor_of(const live_server& server);

/// What a process holds now; later it must hold no more.
class process_room {
 public:
  explicit process_room(const live_server& server);

  /// Memory that it may have grown by, in bytes. True where sanitizers keep what was freed.
  [[nodiscard]] bool grew_at_most(std::int64_t bytes) const;
  [[nodiscard]] std::int64_t growth() const;
  /// Waits until no more descriptors are open than at first.
  [[nodiscard]] bool has_its_descriptors_back() const;

 private:
  const live_server& server_;
  std::size_t descriptors_;
  std::int64_t memory_;
};

}  // namespace leasehold::e2e
