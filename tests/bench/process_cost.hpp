// What a process has cost so far, as the kernel counts it.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace leasehold::bench {

/// User and system time of all its threads, in seconds.
double cpu_seconds_of(pid_t process);
/// Memory that is its own (anonymous, resident), in bytes.
std::int64_t memory_of(pid_t process);

}  // namespace leasehold::bench
