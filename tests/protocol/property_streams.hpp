// Random streams of what can happen to one lease. A choice says what comes next in terms of the
// lease as it is then, so that streams go deep; 0 everywhere is the harmless choice, which is where
// a failing stream shrinks to.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <vector>

#include "leasehold/protocol/rules.hpp"

namespace leasehold {

struct choice {
  int kind = 0;        ///< index into the kinds of the stream
  int generation = 0;  ///< 0: current; else so many below; -1: one above
  int holder = 0;      ///< 0: the recorded one; 1 and 2: `a` and `b`; 3: nobody
  int sequence = 0;    ///< 0: one more than the last; else this one less 1
  int value = 0;
  int ending = 0;
  int sent = 0;     ///< 0: now; else index into plausible and implausible offsets
  int time = 0;     ///< index into steps of time, some of them around the next deadline
  int request = 0;  ///< 0: none; else one of a few ids
  bool flag = false;
};

std::ostream& operator<<(std::ostream& out, const choice& c);

/// An event at its time.
struct moment {
  protocol::event what;
  protocol::instant at;
};

std::ostream& operator<<(std::ostream& out, const moment& m);

/// Frames and operations of a job; acquire and the frames of a lock.
enum class subject : std::uint8_t { job, lock };

/// The event that a choice means for this lease.
moment resolve_choice(const choice& c, subject about, const protocol::record& lease,
                      protocol::instant now);

/// True when the stream goes on with a new lease, for the one at hand has ended.
bool goes_on_with_another(const choice& c, const protocol::record& lease);

/// A few policies that differ in every key that decides something.
protocol::policy policy_number(int number);
inline constexpr int policy_count = 12;

}  // namespace leasehold
