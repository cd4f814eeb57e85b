// Whose files are trusted, by owner and mode.
#include "src/file_access.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace leasehold::server {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr uid_t us = 1000;

std::string fault(uid_t owner, mode_t mode, privacy wanted, uid_t self = us) {
  struct stat found {};
  found.st_uid = owner;
  found.st_mode = S_IFREG | mode;
  return find_access_fault("store", "/d/leasehold.db", found, wanted, self).value_or("");
}

TEST(file_access, AFileOfOursOrOfRootIsTrusted) {
  EXPECT_EQ(fault(us, 0600, privacy::reached_by_nobody_else), "");
  EXPECT_EQ(fault(0, 0600, privacy::reached_by_nobody_else), "");
  EXPECT_EQ(fault(0, 0600, privacy::reached_by_nobody_else, 0), "");
}

TEST(file_access, AFileOfAnotherUserIsRefusedWithItsOwnerAndTheRemedy) {
  for (const auto wanted : {privacy::reached_by_nobody_else, privacy::written_by_nobody_else}) {
    EXPECT_THAT(fault(1001, 0600, wanted),
                AllOf(HasSubstr("store /d/leasehold.db"), HasSubstr("user 1001"),
                      HasSubstr("as user 1000"), HasSubstr("chown 1000 /d/leasehold.db")));
    // Root trusts nobody but itself.
    EXPECT_THAT(fault(us, 0600, wanted, 0), HasSubstr("chown 0 /d/leasehold.db"));
  }
}

TEST(file_access, AFileThatOthersCanWriteIsRefusedWithItsModeAndTheRemedy) {
  for (const mode_t mode : {0620U, 0602U, 0666U}) {
    EXPECT_THAT(fault(us, mode, privacy::written_by_nobody_else),
                AllOf(HasSubstr("mode 06"), HasSubstr("chmod go-w /d/leasehold.db")));
  }
  EXPECT_EQ(fault(us, 0644, privacy::written_by_nobody_else), "");
}

TEST(file_access, AFileThatOthersCanReachInAnyWayIsRefusedWhereItIsPrivate) {
  for (const mode_t mode : {0640U, 0604U, 0610U, 0601U, 0620U, 0602U}) {
    EXPECT_THAT(fault(us, mode, privacy::reached_by_nobody_else),
                HasSubstr("chmod 600 /d/leasehold.db"));
  }
}

}  // namespace
}  // namespace leasehold::server
