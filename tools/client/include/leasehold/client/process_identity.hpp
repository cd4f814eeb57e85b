// What identifies a process on this machine beyond its number (Linux).
#pragma once

#include <cstdint>
#include <optional>

#include "leasehold/protocol/process_handle.hpp"

namespace leasehold::client {

/// The handle of a process that leads its group. Nothing when there is no such process, it leads no
/// group, or this machine does not tell. May be asked from any thread.
std::optional<protocol::process_handle> identify_process(std::int64_t pid);

}  // namespace leasehold::client
