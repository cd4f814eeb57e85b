// What `leasehold exec` and its watchdog tell each other, a message at a time over a socket pair of
// the same machine and the same program.
#pragma once

#include <cstdint>

namespace leasehold::tools {

/// From exec.
struct watch_order {
  enum class kind : std::int32_t {
    deadline,  ///< authority ends at `at_ns`
    start,     ///< start the command number `command`; the group before it is ended first
    finish     ///< the group is gone: end what there is, and then yourself
  };
  kind what = kind::deadline;
  std::int32_t command = 0;
  std::int64_t at_ns = 0;  ///< of the boot clock
};

/// From the watchdog.
struct watch_report {
  enum class kind : std::int32_t {
    forked,       ///< the group `value` is there; the command may still fail to start
    not_started,  ///< with the errno `value`; the group is gone
    stopped,      ///< the leader was stopped by the signal `value`
    exited,       ///< the leader ended with the exit status `value`; the group keeps its number
    killed        ///< the leader was ended by the signal `value`; the group keeps its number
  };
  kind what = kind::forked;
  std::int32_t value = 0;
};

}  // namespace leasehold::tools
