// Files in the tree that a program writes must be what it would write now.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "tools/reasons.hpp"

namespace leasehold::tests {
namespace {

TEST(GeneratedFiles, ReasonsPageIsWhatReasonDefSays) {
  std::ifstream in(LEASEHOLD_SOURCE_DIR "/docs/REASONS.md");
  const std::string page{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(page, tools::reasons_page())
      << "mend it: leasehold reasons --markdown > docs/REASONS.md";
}

}  // namespace
}  // namespace leasehold::tests
