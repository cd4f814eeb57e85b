// Whether a number still means the process that was registered under it
// (cancellation-dispatch.md, Act) [D2.3].
//
// The process is first held by a pidfd and then proven by what /proc says under its number. As long
// as it is not reaped, nobody else can have that number, so what was read is about the process that
// is held; and a signal through the pidfd reaches it or nobody. No number is ever signalled.
//
// The group is signalled through the leader's pidfd too (Linux 6.9). Before that kernel each member
// is held by a pidfd of its own, read again, and signalled only if the leader is proven once more
// after that: while the leader keeps its number, a process of the group of that number is one of
// its own. A group whose leader is reaped is not signalled: nothing proves any more whose it is.
#pragma once

#include <cstdint>
#include <string_view>

#include "leasehold/protocol/dispatch.hpp"
#include "leasehold/protocol/process_handle.hpp"
#include "src/controllers/pidfd.hpp"

namespace leasehold::controllers {

struct process_proof {
  /// none: proven; `process` may be signalled. already_exited: it has ended, and its group with it.
  /// pid_mismatch: the number leads no group of its own any more, is not that of a process, or is
  /// ours. identity_mismatch: the number was given to another process.
  protocol::dispatch_result why = protocol::dispatch_result::none;
  pidfd process;
};

/// `boot_id`: of this start of this machine.
process_proof prove_process(const protocol::process_handle& handle, std::string_view boot_id);

/// The same once more, of a process that was proven and has been held since.
protocol::dispatch_result prove_again(const protocol::process_handle& handle, const pidfd& held);

enum class group_signal : std::uint8_t {
  at_once,    ///< through the leader where the kernel can, else by member
  by_member,  ///< as on kernels before Linux 6.9
};

/// To the group of a process that was proven just before. False: the leader was not reached.
bool signal_proven_group(const protocol::process_handle& handle, const pidfd& held, int signal,
                         group_signal how);

}  // namespace leasehold::controllers
