// Getting the lock: asks until it is granted, refused for good, or the time for it is over.
#pragma once

#include <chrono>
#include <string>
#include <variant>

#include "tools/exec/lock_client.hpp"
#include "tools/exit_codes.hpp"

namespace leasehold::tools {

struct acquired_lock {
  lock_grant grant;
  boot_time sent;  ///< when the request that was granted was first sent
};

struct not_acquired {
  exit_code code = exit_code::exec_failed;
  std::string sentence;
};

struct acquire_plan {
  acquire_request request;
  std::chrono::milliseconds wait{};  ///< 0: it is not waited for
  int stop_descriptor = -1;          ///< readable once nobody wants it any more
};

/// What a refusal of an acquire means.
enum class refusal_kind { held, waited_out, grant_ended, later, final };
refusal_kind kind_of(const lock_refusal& refusal);

/// Asks with one request id, so that a grant whose answer was lost is found again. Where the
/// coordinator's longest wait is shorter than the plan's, it asks anew and stands at the end of the
/// queue again. One that cannot be reached is tried for as long as the plan waits, or for two
/// seconds where it does not. Yields not_acquired with code `interrupted` when it was stopped.
std::variant<acquired_lock, not_acquired> acquire(lock_client& client, acquire_plan plan);

}  // namespace leasehold::tools
