// The mark of a copy that was not finished: whoever opens a store looks for it.
#pragma once

#include <cstdint>
#include <string_view>

namespace leasehold::storage {

/// Stands for the version of the tables while they are filled: above every one that there will be,
/// so that a program that does not know the mark refuses the store too.
inline constexpr std::int64_t unfinished_version = 1'000'000;

/// What such a store is refused with, behind its place.
inline constexpr std::string_view unfinished_copy =
    "holds a copy that was not finished; make it anew with leasehold store copy --restart, or "
    "remove it";

}  // namespace leasehold::storage
