// The programs of PostgreSQL on this machine, and the user that runs them.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "e2e/program_run.hpp"

namespace leasehold::tests {

/// As tools/pg-sandbox finds them: PostgreSQL does not run as root.
struct postgres_programs {
  std::filesystem::path directory;
  uid_t user = 0;
  gid_t group = 0;

  [[nodiscard]] static const postgres_programs& of_this_machine();

  [[nodiscard]] std::string path_of(const std::string& name) const {
    return (directory / name).string();
  }
  /// Starts a program as that user, with the signal `end` (QUIT) sent to it should this process
  /// end.
  [[nodiscard]] std::unique_ptr<e2e::program_run> run(const std::string& program,
                                                      std::vector<std::string> arguments,
                                                      const std::filesystem::path& output,
                                                      const std::string& end = "KILL") const;
  /// Gives a file, or a directory and all in it, to that user.
  void give(const std::filesystem::path& path) const;
};

}  // namespace leasehold::tests
