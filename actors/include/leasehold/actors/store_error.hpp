// What a store says when something outside of it is broken.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

namespace leasehold::actors {

/// Something outside is broken: disk, file, database. Not a decision.
struct store_error {
  enum class kind : std::uint8_t {
    busy,     ///< somebody else has the lock; may pass
    full,     ///< no space
    io,       ///< reading or writing failed
    corrupt,  ///< the content is not what was written
    foreign,  ///< not a Leasehold store, or a newer one
    taken,    ///< another coordinator has the store
    fatal,    ///< an fsync failed: the process must stop and recover
    deposed,  ///< another coordinator took the store over: nothing of this one is written any more
  };
  kind what = kind::io;
  std::string sentence;  ///< what, where, and the way out
};

template <class T>
using store_result = std::variant<T, store_error>;

}  // namespace leasehold::actors
