#include "src/store/kept_head.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <system_error>

#include "src/store/verify.hpp"

namespace leasehold::storage {

std::optional<actors::log_head> read_kept_head(const std::filesystem::path& directory) {
  std::ifstream in(directory / kept_head_name);
  std::string text;
  std::getline(in, text);
  return head_from_text(text);
}

bool keep_head(const std::filesystem::path& directory, const actors::log_head& head) {
  const std::filesystem::path file = directory / kept_head_name;
  const std::filesystem::path next = file.string() + ".new";
  const int descriptor = ::open(next.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (descriptor < 0) return false;
  const std::string text = to_text(head) + "\n";
  const bool written =
      ::write(descriptor, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
      ::fdatasync(descriptor) == 0;
  ::close(descriptor);
  std::error_code failed;
  if (written) std::filesystem::rename(next, file, failed);
  return written && !failed;
}

}  // namespace leasehold::storage
