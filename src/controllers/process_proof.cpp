#include "src/controllers/process_proof.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "src/controllers/process_stat.hpp"

namespace leasehold::controllers {

namespace {

using protocol::dispatch_result;
using protocol::process_handle;

/// A group may grow while it is signalled; those who came meanwhile are looked for this often.
constexpr int most_rounds = 4;

bool is_ours(const process_handle& handle) {
  return handle.pid == getpid() || handle.process_group == getpgrp();
}

/// There is no process of that number. Its children may go on in its group.
dispatch_result proof_of_end(const process_handle& handle) {
  return living_members(handle.process_group).empty() ? dispatch_result::already_exited
                                                      : dispatch_result::pid_mismatch;
}

bool is_the_one(const process_stat& seen, const process_handle& handle) {
  return seen.pid == handle.pid && seen.start_ticks == handle.start_ticks &&
         seen.process_group == handle.process_group;
}

dispatch_result judge(const process_handle& handle, const pidfd& held, bool was_proven) {
  const auto seen = stat_of(handle.pid);
  if (!seen) return held.has_exited() ? proof_of_end(handle) : dispatch_result::dispatch_error;
  if (seen->pid != handle.pid) return dispatch_result::pid_mismatch;
  if (seen->start_ticks != handle.start_ticks) {
    // A number is given away only when neither a process nor a group has it any more.
    const bool was_given_away = was_proven && held.has_exited();
    return was_given_away ? dispatch_result::already_exited : dispatch_result::identity_mismatch;
  }
  if (seen->process_group != handle.process_group) return dispatch_result::pid_mismatch;
  if (held.has_exited() && living_members(handle.process_group).empty()) {
    return dispatch_result::already_exited;
  }
  return dispatch_result::none;
}

/// A member is signalled only if it was in the group while the leader had its number.
void signal_member(const process_handle& leader, std::int64_t pid, int signal) {
  const auto member = pidfd::open(pid);
  if (!member) return;
  const auto seen = stat_of(pid);
  if (!seen || seen->process_group != leader.process_group || member.has_exited()) return;
  const auto of_leader = stat_of(leader.pid);
  if (of_leader && is_the_one(*of_leader, leader)) (void)member.signal(signal);
}

void signal_members(const process_handle& leader, int signal) {
  std::set<std::int64_t> told;
  for (int round = 0; round < most_rounds; ++round) {
    bool is_anybody_new = false;
    for (const auto pid : living_members(leader.process_group)) {
      if (pid == leader.pid || !told.insert(pid).second) continue;
      is_anybody_new = true;
      signal_member(leader, pid, signal);
    }
    if (!is_anybody_new) return;
  }
}

}  // namespace

process_proof prove_process(const process_handle& handle, std::string_view boot_id) {
  if (!protocol::is_well_formed(handle)) return {dispatch_result::invalid, {}};
  if (handle.platform != protocol::supported_platform) return {dispatch_result::unsupported, {}};
  if (handle.boot_id != boot_id) return {dispatch_result::already_exited, {}};
  if (is_ours(handle)) return {dispatch_result::pid_mismatch, {}};
  process_proof out;
  out.process = pidfd::open(handle.pid);
  if (out.process) {
    out.why = judge(handle, out.process, false);
  } else if (errno == ESRCH) {
    out.why = proof_of_end(handle);
  } else if (errno == EINVAL || errno == ENOENT) {
    out.why = dispatch_result::pid_mismatch;  // the number of a thread
  } else {
    out.why = errno == ENOSYS ? dispatch_result::unsupported : dispatch_result::dispatch_error;
  }
  return out;
}

dispatch_result prove_again(const process_handle& handle, const pidfd& held) {
  return judge(handle, held, true);
}

bool signal_proven_group(const process_handle& handle, const pidfd& held, int signal,
                         group_signal how) {
  if (how == group_signal::at_once) {
    if (held.signal_group(signal)) return true;
    if (errno != EINVAL) return false;
  }
  // The leader comes last: without it nobody else could be proven.
  signal_members(handle, signal);
  return held.signal(signal);
}

}  // namespace leasehold::controllers
