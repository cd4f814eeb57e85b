// One coordinator per directory, which is locked for life.
#pragma once

#include <filesystem>
#include <string>

#include "leasehold/actors/store.hpp"

namespace leasehold::storage {

/// The lock goes with the process, also when it is killed; the file stays.
class directory_lock {
 public:
  /// `taken` when another process, or this one, has it.
  static actors::store_result<directory_lock> take(const std::filesystem::path& directory);
  ~directory_lock();
  directory_lock(directory_lock&& other) noexcept;
  directory_lock& operator=(directory_lock&& other) noexcept;

 private:
  directory_lock(int file, int directory) : file_(file), directory_(directory) {}
  int file_ = -1;  ///< tells who has it
  int directory_ = -1;
};

}  // namespace leasehold::storage
