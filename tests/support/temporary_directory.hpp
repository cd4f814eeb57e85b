// A directory that goes with the test that made it.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

namespace leasehold::tests {

class temporary_directory {
 public:
  temporary_directory() {
    std::string made = (std::filesystem::temp_directory_path() / "leasehold-XXXXXX").string();
    if (::mkdtemp(made.data()) != nullptr) path_ = made;
  }
  ~temporary_directory() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  temporary_directory(const temporary_directory&) = delete;
  temporary_directory& operator=(const temporary_directory&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace leasehold::tests
