// The n-th call of the store's file system fails, for every operation and every n until none is hit
// any more: what is refused never happened, what was answered stays, and the coordinator goes on as
// soon as the disk does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>

#include "disk_faults.hpp"
#include "operation_run.hpp"
#include "support/temporary_directory.hpp"

namespace leasehold::tests {
namespace {

namespace fs = std::filesystem;

/// Directories on a disk that fails.
class failing_disk final : public failing_ground {
 public:
  failing_disk() { const scene made(fresh_.path(), std::make_shared<manual_clock>()); }

  log_place& fresh() override {
    directory_ = std::make_unique<temporary_directory>();
    fs::copy(fresh_.path(), directory_->path(), fs::copy_options::recursive);
    place_ = std::make_unique<directory_place>(directory_->path());
    return *place_;
  }
  [[nodiscard]] int hits() const override { return static_cast<int>(disk.hits()); }
  void mend() override { disk.mend(); }

  faulty_vfs disk;

 private:
  temporary_directory fresh_;
  std::unique_ptr<temporary_directory> directory_;
  std::unique_ptr<directory_place> place_;
};

class StoreFaults : public ::testing::TestWithParam<std::size_t> {};

TEST_P(StoreFaults, AreRefusedOrPassedOverAndNothingThatWasAnsweredIsLost) {
  failing_disk ground;
  operation_run run(all_operations()[GetParam()], ground);
  for_each_fault([&](const file_fault& what, std::int64_t n, bool lasts) {
    return run.with([&] { ground.disk.fail(what, n, lasts); }, lasts);
  });
  std::cout << run.summary() << "\n";
}

INSTANTIATE_TEST_SUITE_P(Operations, StoreFaults,
                         ::testing::Range(std::size_t{0}, all_operations().size()),
                         [](const ::testing::TestParamInfo<std::size_t>& with) {
                           auto name = all_operations()[with.param].name;
                           std::ranges::replace_if(
                               name, [](char c) { return std::isalnum(c) == 0; }, '_');
                           return name;
                         });

}  // namespace
}  // namespace leasehold::tests
