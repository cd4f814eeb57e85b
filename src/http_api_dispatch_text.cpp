// What a dispatch says to a person who looks at its job.
#include <fmt/chrono.h>

#include <algorithm>
#include <ctime>

#include "src/http_api_job.hpp"

namespace leasehold::server {
namespace {

using protocol::dispatch_record;
using protocol::dispatch_result;
using protocol::dispatch_stage;
using protocol::dispatch_status;

std::string time_of(protocol::instant at) {
  return fmt::format("{:%FT%TZ}", fmt::gmtime(static_cast<std::time_t>(at.ms / 1000)));
}

std::string when(protocol::instant at) { return at.ms == 0 ? "at once" : "at " + time_of(at); }

std::string_view way(dispatch_stage stage) {
  return stage == dispatch_stage::stream ? "over the stream" : "to its process";
}

std::string pending_text(const dispatch_record& d) {
  if (d.stage == dispatch_stage::stream) {
    return "It waits to be dispatched over the stream.";
  }
  if (d.last_result == dispatch_result::termination_requested) {
    return "It was dispatched over the stream at " + time_of(d.last_dispatched_at) +
           "; its process is ended from " + time_of(d.next_attempt_at) +
           " on, if the job has not ended by then.";
  }
  return "It waits to be dispatched to its process, from " + time_of(d.next_attempt_at) + " on.";
}

std::string_view passing_cause(const dispatch_record& d) {
  switch (d.last_result) {
    case dispatch_result::controller_missing:
      return d.stage == dispatch_stage::stream ? "Its holder is not connected"
                                               : "Nobody could act on its process";
    case dispatch_result::handle_missing:
      return "No process is registered for it";
    case dispatch_result::dispatch_error:
      return d.stage == dispatch_stage::stream ? "Its holder did not acknowledge it in time"
                                               : "Its process could not be signalled";
    case dispatch_result::none:
    case dispatch_result::termination_requested:
    case dispatch_result::already_exited:
    case dispatch_result::identity_mismatch:
    case dispatch_result::pid_mismatch:
    case dispatch_result::unsupported:
    case dispatch_result::invalid:
      break;
  }
  return "Its dispatch failed";
}

std::string dispatched_text(const dispatch_record& d) {
  const auto at = time_of(d.last_dispatched_at);
  if (d.last_result == dispatch_result::already_exited) {
    return "Its process was found to have exited at " + at + "; the coordinator settles it.";
  }
  return fmt::format("It was dispatched {} at {}; waiting for the result, proof, or an operator.",
                     way(d.stage), at);
}

std::string closed_text(const protocol::record& job, const dispatch_record& d) {
  const bool is_open = (protocol::is_live(job.state) && job.gen == d.gen) ||
                       std::ranges::any_of(job.unproven,
                                           [&](const auto& each) { return each.gen == d.gen; });
  if (is_open) return "An operator resolved its dispatch: nothing more is done to end the work.";
  return fmt::format(
      "Its dispatch is closed: generation {} has ended; work of an earlier one is not dispatched.",
      d.gen.value);
}

}  // namespace

bool has_open_cancel(const protocol::record& job) {
  return job.cancel_requested_at && !protocol::is_settled(job.state);
}

std::string dispatch_sentence(const protocol::record& job, const dispatch_record& dispatch) {
  switch (dispatch.status) {
    case dispatch_status::pending:
      return pending_text(dispatch);
    case dispatch_status::leased:
      return fmt::format("It is being dispatched {}.", way(dispatch.stage));
    case dispatch_status::retry_wait:
      return fmt::format("{}; it is dispatched {} again {}.", passing_cause(dispatch),
                         way(dispatch.stage), when(dispatch.next_attempt_at));
    case dispatch_status::dispatched:
      return dispatched_text(dispatch);
    case dispatch_status::blocked:
      return fmt::format(
          "Its dispatch is blocked ({}): the process is not provably the one; an operator must look "
          "(leasehold dispatch show {}).",
          protocol::word(dispatch.last_result), job.job.value);
    case dispatch_status::closed:
      return closed_text(job, dispatch);
  }
  return {};
}

}  // namespace leasehold::server
