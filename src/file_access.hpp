// Whether a file is in the hands of the user that the program runs as: whoever else owns it or may
// write it could let anybody in, or change what was decided.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace leasehold::server {

/// What others than the owner may not do.
enum class privacy : std::uint8_t { written_by_nobody_else, reached_by_nobody_else };

/// What is wrong with `found`, the facts of `file`, in one sentence with the owner or mode and the
/// way out. `what`: how the sentence calls it ("data directory"). `self`: the effective user; root
/// may own it too, since it needs no permission of anybody's.
std::optional<std::string> find_access_fault(const std::string& what,
                                             const std::filesystem::path& file,
                                             const struct stat& found, privacy wanted, uid_t self);

}  // namespace leasehold::server
