// docs/REASONS.md against the list that it is made of.
#include <gtest/gtest.h>

#include "scenario/scenario_files.hpp"
#include "tools/reasons.hpp"

namespace leasehold::tools {
namespace {

TEST(ReasonsPage, IsWhatTheProgramPrints) {
  EXPECT_EQ(text_of(std::filesystem::path(LEASEHOLD_SOURCE_DIR) / "docs/REASONS.md"),
            reasons_page())
      << "make it anew: leasehold reasons --markdown > docs/REASONS.md";
}

}  // namespace
}  // namespace leasehold::tools
