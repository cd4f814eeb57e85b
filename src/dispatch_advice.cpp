#include "src/dispatch_advice.hpp"

#include <array>

namespace leasehold::server {
namespace {

using protocol::dispatch_result;
using protocol::dispatch_stage;
using protocol::dispatch_status;

std::string_view standing(dispatch_status status, dispatch_stage stage) {
  switch (status) {
    case dispatch_status::pending:
      return stage == dispatch_stage::stream
                 ? "The stop waits to be asked of the holder's connection."
                 : "The stop waits to be signalled to the process, from next_attempt_at on.";
    case dispatch_status::leased:
      return "A dispatcher has claimed it and acts on it; nobody else does before "
             "lease_expires_at.";
    case dispatch_status::retry_wait:
      return "An attempt failed in passing; it is made again at next_attempt_at.";
    case dispatch_status::dispatched:
      return "All that a dispatcher can do is done; the job's terminal result is waited for.";
    case dispatch_status::blocked:
      return "The process could not be proven to be the attempt's: nothing was signalled, and "
             "nothing is tried again by itself.";
    case dispatch_status::closed:
      return "Nothing is left to dispatch: the job has settled, its attempt has provably ended, or "
             "an operator resolved it.";
  }
  return {};
}

std::string_view newest(dispatch_result last) {
  switch (last) {
    case dispatch_result::none:
      return "No attempt has reported yet.";
    case dispatch_result::termination_requested:
      return "The newest attempt asked for the stop.";
    case dispatch_result::already_exited:
      return "The newest attempt found the process gone.";
    case dispatch_result::identity_mismatch:
      return "The newest attempt found another process under its number: the number was given "
             "anew.";
    case dispatch_result::pid_mismatch:
      return "The newest attempt found a process that is not the attempt's, or that does not lead "
             "its group.";
    case dispatch_result::unsupported:
      return "The newest attempt met a platform whose processes cannot be proven.";
    case dispatch_result::invalid:
      return "The newest attempt met a registration that is not well formed.";
    case dispatch_result::controller_missing:
      return "The newest attempt found nobody to ask: the holder has no connection, or the "
             "dispatcher has no controller for this stage.";
    case dispatch_result::handle_missing:
      return "The newest attempt found no registered process.";
    case dispatch_result::dispatch_error:
      return "The newest attempt failed on its way.";
  }
  return {};
}

constexpr std::string_view what_ends_it =
    "When it is known that the work has ended: leasehold dispatch resolve, then leasehold job "
    "reconcile. Never kill by the number alone.";

struct check_row {
  dispatch_status status;
  dispatch_stage stage;
  dispatch_result last;  ///< none: every result without a row of its own
  std::string_view check;
};

constexpr std::array<check_row, 17> checks{{
    {dispatch_status::pending, dispatch_stage::stream, dispatch_result::none,
     "If it stays: is the coordinator ready (/readyz)? Its dispatcher takes pending records within "
     "a second."},
    {dispatch_status::pending, dispatch_stage::process, dispatch_result::none,
     "If it stays past next_attempt_at: does leaseholdd dispatcher --controllers process run on "
     "the machine whose /proc/sys/kernel/random/boot_id is host?"},
    {dispatch_status::leased, dispatch_stage::stream, dispatch_result::none,
     "Nothing yet. If lease_expires_at has passed, lease_owner has ended and another takes it over "
     "by itself."},
    {dispatch_status::leased, dispatch_stage::process, dispatch_result::none,
     "Nothing yet. If lease_expires_at has passed, the dispatcher lease_owner has ended: is "
     "another one running on that machine?"},
    {dispatch_status::retry_wait, dispatch_stage::stream, dispatch_result::none,
     "Is the worker connected (leasehold workers), and can it reach the coordinator?"},
    {dispatch_status::retry_wait, dispatch_stage::stream, dispatch_result::controller_missing,
     "Is the worker connected (leasehold workers)? With a registered process the stop goes on "
     "there once cancel_deadline has passed; without one, look at the worker itself."},
    {dispatch_status::retry_wait, dispatch_stage::process, dispatch_result::none,
     "What does the log of the dispatcher on that machine say? It must run as the worker's user, "
     "or be allowed to signal its processes."},
    {dispatch_status::retry_wait, dispatch_stage::process, dispatch_result::controller_missing,
     "Is the dispatcher on that machine started with --controllers process?"},
    {dispatch_status::retry_wait, dispatch_stage::process, dispatch_result::handle_missing,
     "Does the worker register the process that it starts? Without that nothing can be signalled: "
     "stop the work by hand, then leasehold job reconcile."},
    {dispatch_status::dispatched, dispatch_stage::stream, dispatch_result::none,
     "If the job stays: the worker was told and does not report an end. Look at it; when it is "
     "known how the work ended, leasehold job reconcile."},
    {dispatch_status::dispatched, dispatch_stage::process, dispatch_result::none,
     "If the job stays: the process was signalled and no end was reported. leasehold dispatch "
     "retry looks at the process again; when it is known how it ended, leasehold job reconcile."},
    {dispatch_status::dispatched, dispatch_stage::process, dispatch_result::already_exited,
     "The coordinator takes this as proof by itself. If the job stays, an older attempt of it is "
     "unproven: leasehold job show."},
    {dispatch_status::blocked, dispatch_stage::stream, dispatch_result::none, what_ends_it},
    {dispatch_status::blocked, dispatch_stage::process, dispatch_result::none,
     "Look on the machine whose boot id is host whether the worker's process still runs. When it "
     "is known that the work has ended: leasehold dispatch resolve, then leasehold job reconcile. "
     "Never kill by the number alone."},
    {dispatch_status::blocked, dispatch_stage::process, dispatch_result::unsupported,
     "Only processes of Linux with pidfd_open can be proven. Stop the work by its own means; then "
     "leasehold dispatch resolve, and leasehold job reconcile."},
    {dispatch_status::closed, dispatch_stage::stream, dispatch_result::none,
     "Nothing; leasehold job show says how the job stands. After a resolve it still wants "
     "leasehold job reconcile."},
    {dispatch_status::closed, dispatch_stage::process, dispatch_result::none,
     "Nothing; leasehold job show says how the job stands. After a resolve it still wants "
     "leasehold job reconcile."},
}};

constexpr std::string_view find_check(dispatch_status status, dispatch_stage stage,
                                      dispatch_result last) {
  for (const dispatch_result wanted : {last, dispatch_result::none}) {
    for (const check_row& row : checks) {
      if (row.status == status && row.stage == stage && row.last == wanted) return row.check;
    }
  }
  return {};
}

constexpr bool every_case_has_a_check() {
  for (const auto status : protocol::all_dispatch_statuses) {
    for (const auto stage : protocol::all_dispatch_stages) {
      if (find_check(status, stage, dispatch_result::none).empty()) return false;
    }
  }
  return true;
}
static_assert(every_case_has_a_check());

}  // namespace

dispatch_advice advice_on(dispatch_status status, dispatch_stage stage, dispatch_result last) {
  return {std::string(standing(status, stage)) + ' ' + std::string(newest(last)),
          find_check(status, stage, last)};
}

}  // namespace leasehold::server
