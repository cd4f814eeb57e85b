// What identifies the process that works on an attempt, so that it can be signalled without ever
// meeting a stranger that was given its number later (cancellation-dispatch.md, Act) [D2.3].
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace leasehold::protocol {

/// A durable handle: it stays true across restarts of everything but the process itself. It is kept
/// apart from records and events, and never shown.
struct process_handle {
  std::string platform;            ///< "linux" is the only one that is supported
  std::int64_t pid = 0;            ///< as seen in the pid namespace of the host
  std::string boot_id;             ///< of the machine's start that the process belongs to: the host
  std::int64_t start_ticks = 0;    ///< field 22 of /proc/PID/stat
  std::int64_t process_group = 0;  ///< equal to pid: the process leads its group
  friend bool operator==(const process_handle&, const process_handle&) = default;
};

/// Whether every field is there and in its range: platform 1 to 16 of `a-z0-9`, pid 2 to 2^22, boot
/// id a lower-case UUID, start_ticks from 1, process_group equal to pid.
[[nodiscard]] bool is_well_formed(const process_handle& handle) noexcept;

/// The platform whose processes a controller of ours can prove.
inline constexpr std::string_view supported_platform = "linux";

}  // namespace leasehold::protocol
