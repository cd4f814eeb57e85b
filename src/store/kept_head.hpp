// Where the log ended not long ago, kept beside the database: a log that does not reach that far
// has lost its end, with a write-ahead log that was removed or a file that was put back.
#pragma once

#include <filesystem>
#include <optional>

#include "leasehold/actors/store.hpp"

namespace leasehold::storage {

inline constexpr std::string_view kept_head_name = "head";

/// Nothing when none was kept, or what is there cannot be read.
std::optional<actors::log_head> read_kept_head(const std::filesystem::path& directory);

/// Replaces it as a whole. False when it could not be written; the old one then stays.
bool keep_head(const std::filesystem::path& directory, const actors::log_head& head);

}  // namespace leasehold::storage
