// What an acquire may ask for, over HTTP as on a stream.
#pragma once

#include "leasehold/protocol/units.hpp"

namespace leasehold::actors {

/// Of lock_delay: no holder closes a lock for longer behind itself.
inline constexpr protocol::duration longest_lock_delay{3'600'000};

}  // namespace leasehold::actors
