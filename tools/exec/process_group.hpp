// A process group by its number: signals to all of it, and whether any of it still lives.
#pragma once

#include <sys/types.h>

namespace leasehold::tools {

/// To every process of the group. The number must be held: by a leader that nobody has waited for.
void signal_group(pid_t group, int number) noexcept;

/// TERM, and CONT so that what is stopped hears it.
void ask_group_to_end(pid_t group) noexcept;

/// True while a process of the group runs or is stopped; one that has ended and was not waited for
/// does not count. Goes through /proc unless the group has nobody at all; what cannot be read
/// lives.
bool group_lives(pid_t group);

/// False where /proc is not mounted: then nobody could see a group end.
bool processes_can_be_seen();

}  // namespace leasehold::tools
