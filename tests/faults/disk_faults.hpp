// What a disk can do to a store, as a table, and the loop over all its calls.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "support/faulty_vfs.hpp"

namespace leasehold::tests {

struct named_fault {
  std::string name;
  file_fault what;
};

inline const std::vector<named_fault>& all_disk_faults() {
  static const std::vector<named_fault> all{
      {"the disk is full at a write", {file_calls::write, SQLITE_FULL}},
      {"the disk is full in the middle of a write", {file_calls::write, SQLITE_FULL, true}},
      {"a write fails", {file_calls::write, SQLITE_IOERR_WRITE}},
      {"a write fails half way", {file_calls::write, SQLITE_IOERR_WRITE, true}},
      {"an fsync fails", {file_calls::sync, SQLITE_IOERR_FSYNC}},
      {"a read fails", {file_calls::read, SQLITE_IOERR_READ}},
      {"a read of the log is short", {file_calls::read, SQLITE_IOERR_SHORT_READ, true, true}},
      {"a truncation fails", {file_calls::truncate, SQLITE_IOERR_TRUNCATE}},
      {"a file does not open", {file_calls::open, SQLITE_CANTOPEN}},
      {"a file cannot be removed", {file_calls::remove, SQLITE_IOERR_DELETE}},
      {"a file cannot be looked at", {file_calls::look, SQLITE_IOERR_FSTAT}},
      {"another has the lock of a file", {file_calls::lock, SQLITE_BUSY}},
      {"a lock of a file fails", {file_calls::lock, SQLITE_IOERR_LOCK}},
      {"another has the shared lock", {file_calls::shared_lock, SQLITE_BUSY}},
      {"a shared lock fails", {file_calls::shared_lock, SQLITE_IOERR_SHMLOCK}},
      {"memory cannot be shared", {file_calls::shared_map, SQLITE_IOERR_SHMMAP}},
  };
  return all;
}

/// Runs with each fault at the n-th call, once and for ever, n = 1, 2, ... until a run is not hit
/// any more, which `run` says. How many runs were hit.
inline int for_each_fault(
    const std::function<bool(const file_fault& what, std::int64_t n, bool lasts)>& run) {
  constexpr std::int64_t most_calls = 1'000;
  int hits = 0;
  for (const auto& fault : all_disk_faults()) {
    for (const bool lasts : {false, true}) {
      std::int64_t n = 1;
      const auto hit = [&] {
        const ::testing::ScopedTrace where(
            __FILE__, __LINE__,
            fault.name + (lasts ? " for ever" : " once") + ", call " + std::to_string(n));
        return run(fault.what, n, lasts);
      };
      while (n < most_calls && hit() && !::testing::Test::HasFailure()) ++n;
      EXPECT_LT(n, most_calls) << fault.name;
      hits += static_cast<int>(n) - 1;
    }
  }
  EXPECT_GT(hits, 0);
  return hits;
}

}  // namespace leasehold::tests
