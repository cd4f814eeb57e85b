// A copy of a directory in which a store runs, as a kill at that moment would leave it.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <system_error>

namespace leasehold::tests {

/// `to` may be there already. A file that gets its name meanwhile is there under either name.
inline void copy_of_running(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::filesystem::create_directory(to);
  for (const auto& each : std::filesystem::directory_iterator(from)) {
    std::error_code gone;
    std::filesystem::copy_file(each.path(), to / each.path().filename(), gone);
    if (gone == std::errc::no_such_file_or_directory) continue;
    EXPECT_FALSE(gone) << each.path() << ": " << gone.message();
  }
}

}  // namespace leasehold::tests
