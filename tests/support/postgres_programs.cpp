#include "support/postgres_programs.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <sstream>
#include <utility>

#include "support/temporary_directory.hpp"

namespace leasehold::tests {

namespace fs = std::filesystem;

const postgres_programs& postgres_programs::of_this_machine() {
  static const postgres_programs found = [] {
    const temporary_directory kept;
    const auto output = kept.path() / "output";
    e2e::program_run asked(LEASEHOLD_SOURCE_DIR "/tools/pg-sandbox", {"--programs"}, output);
    const auto code = asked.wait();
    postgres_programs out;
    std::istringstream said(e2e::content_of(output));
    said >> out.user >> out.group >> out.directory;
    EXPECT_TRUE(code == 0 && said) << said.str();
    return out;
  }();
  return found;
}

std::unique_ptr<e2e::program_run> postgres_programs::run(const std::string& program,
                                                         std::vector<std::string> arguments,
                                                         const fs::path& output,
                                                         const std::string& end) const {
  std::vector<std::string> words{"--pdeathsig", end};
  if (::geteuid() == 0) {
    words.insert(words.end(), {"--reuid=" + std::to_string(user),
                               "--regid=" + std::to_string(group), "--clear-groups"});
  }
  words.push_back(program);
  words.insert(words.end(), arguments.begin(), arguments.end());
  return std::make_unique<e2e::program_run>("/usr/bin/setpriv", words, output);
}

void postgres_programs::give(const fs::path& path) const {
  if (::geteuid() != 0) return;
  const auto give_one = [this](const fs::path& each) {
    EXPECT_EQ(::lchown(each.c_str(), user, group), 0) << each;
  };
  give_one(path);
  if (!fs::is_directory(path)) return;
  for (const auto& each : fs::recursive_directory_iterator(path)) give_one(each.path());
}

}  // namespace leasehold::tests
