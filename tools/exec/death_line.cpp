#include "tools/exec/death_line.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

namespace leasehold::tools {

death_line::death_line() {
  bool reads_first = true;
  for (auto& each : lines_) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return;
    each.read = descriptor(ends[0]);
    each.write = descriptor(ends[1]);
    if (!reads_first) {
      const int above = fcntl(ends[0], F_DUPFD_CLOEXEC, ends[1]);
      if (above >= 0) each.read = descriptor(above);
    }
    fcntl(each.read.number(), F_SETSIG, SIGKILL);
    reads_first = !reads_first;
  }
}

void death_line::keep_reading_ends() noexcept {
  for (auto& each : lines_) each.write.close();
}

void death_line::tie_own_group() const noexcept {
  const f_owner_ex group{F_OWNER_PGRP, getpid()};
  for (const auto& each : lines_) {
    if (!each.read || fcntl(each.read.number(), F_SETOWN_EX, &group) != 0) continue;
    fcntl(each.read.number(), F_SETFL, fcntl(each.read.number(), F_GETFL) | O_ASYNC);
  }
}

}  // namespace leasehold::tools
