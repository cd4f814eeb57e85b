// The epoch of a store that several coordinators may use: one row, which only its holder renews and
// anybody takes that has seen it unchanged for a whole term (architecture.md 5).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "leasehold/actors/store_error.hpp"
#include "leasehold/protocol/units.hpp"

namespace leasehold::server {

/// Who claims an epoch.
struct epoch_claim {
  std::string holder;  ///< names this life of the process, and nothing else
  std::string active;  ///< where it is reached: HOST:PORT
  protocol::duration term;
  friend bool operator==(const epoch_claim&, const epoch_claim&) = default;
};

/// The row.
struct epoch_row {
  std::int64_t epoch = 0;    ///< rises by one with each take-over
  std::int64_t renewal = 0;  ///< another one after each change of the epoch's row
  epoch_claim by;
  bool released = false;  ///< its holder has ended in good order
  friend bool operator==(const epoch_row&, const epoch_row&) = default;
};

/// One connection of its own. Each call blocks for a bounded time, and may have taken effect though
/// it failed. Called by one thread at a time.
class epoch_store {
 public:
  virtual ~epoch_store() = default;
  /// Nothing: nobody has ever taken it.
  virtual actors::store_result<std::optional<epoch_row>> read() = 0;
  /// Takes the epoch after that of `seen`, when the row still is what was seen. Nothing: it is not.
  virtual actors::store_result<std::optional<epoch_row>> take(const std::optional<epoch_row>& seen,
                                                              const epoch_claim& by) = 0;
  /// Changes the row that is still of this holder and epoch. Nothing: it is not.
  virtual actors::store_result<std::optional<epoch_row>> renew(const epoch_row& mine) = 0;
  /// Says that the holder has ended. False: it was somebody else's already.
  virtual actors::store_result<bool> release(const epoch_row& mine) = 0;
};

}  // namespace leasehold::server
