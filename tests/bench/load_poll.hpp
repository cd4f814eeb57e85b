// One turn over many sockets of a load: waits until one of them has something, writes and reads.
#pragma once

#include <poll.h>

#include <cstdlib>
#include <iostream>
#include <vector>

#include "figures.hpp"
#include "load_socket.hpp"

namespace leasehold::bench {

/// False once all are gone. `socket_of` finds the socket of a member of `many`.
template <class Many, class SocketOf>
bool poll_all(Many& many, SocketOf socket_of, int wait_ms = 100) {
  static thread_local std::vector<pollfd> waits;
  waits.clear();
  bool any = false;
  for (auto& each : many) {
    auto& socket = socket_of(each);
    socket.flush();
    const short what = static_cast<short>(POLLIN | (socket.waits_to_write() ? POLLOUT : 0));
    waits.push_back({socket.gone() ? -1 : socket.descriptor(), what, 0});
    any = any || !socket.gone();
  }
  if (!any) return false;
  ::poll(waits.data(), waits.size(), wait_ms);
  auto wait = waits.begin();
  for (auto& each : many) {
    if ((wait++->revents & (POLLIN | POLLHUP | POLLERR)) != 0) socket_of(each).fill();
  }
  return true;
}

/// One turn of every worker of a load, and then over its sockets. The process ends without
/// sessions.
template <class Workers>
void turn_all(Workers& workers) {
  for (auto& each : workers) each.turn();
  if (poll_all(workers, [](auto& each) -> load_socket& { return each.socket(); })) return;
  std::cerr << "leasehold_bench: every session has ended\n";
  std::exit(1);
}

/// Turns for so many seconds; `show` hears how many have passed.
template <class Workers, class Show>
void turn_for(Workers& workers, double seconds, Show show) {
  const auto begun = steady::now();
  for (double s = 0; s < seconds; s = seconds_since(begun)) {
    turn_all(workers);
    show(s);
  }
}

}  // namespace leasehold::bench
