#include "src/file_access.hpp"

#include <array>
#include <cstdio>

namespace leasehold::server {
namespace {

std::string octal(mode_t mode) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%04o", static_cast<unsigned>(mode & 07777U));
  return text.data();
}

}  // namespace

std::optional<std::string> find_access_fault(const std::string& what,
                                             const std::filesystem::path& file,
                                             const struct stat& found, privacy wanted, uid_t self) {
  const std::string named = "The " + what + " " + file.string();
  if (found.st_uid != self && found.st_uid != 0) {
    return named + " belongs to user " + std::to_string(found.st_uid) + ", and this runs as user " +
           std::to_string(self) + "; run it as that user, or: chown " + std::to_string(self) + " " +
           file.string();
  }
  const std::string mode = " has mode " + octal(found.st_mode);
  switch (wanted) {
    case privacy::written_by_nobody_else:
      if ((found.st_mode & 0022U) == 0) return std::nullopt;
      return named + mode + " and can be written by others than its owner; run: chmod go-w " +
             file.string();
    case privacy::reached_by_nobody_else:
      if ((found.st_mode & 0077U) == 0) return std::nullopt;
      return named + mode + " and can be reached by others than its owner; run: chmod 600 " +
             file.string();
  }
  return std::nullopt;
}

}  // namespace leasehold::server
