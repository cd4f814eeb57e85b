#include "src/store/directory_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace leasehold::storage {

namespace {

/// Who has it, for a sentence; empty when the file does not say.
std::string named_in(int descriptor) {
  std::array<char, 20> text{};
  const ssize_t size = ::pread(descriptor, text.data(), text.size(), 0);
  std::string pid(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  const std::size_t end = pid.find_first_not_of("0123456789");
  const auto number = pid.substr(0, end);
  return number.empty() ? "" : " (process " + number + ")";
}

}  // namespace

actors::store_result<directory_lock> directory_lock::take(const std::filesystem::path& directory) {
  const std::filesystem::path file = directory / "lock";
  const int descriptor = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor < 0) {
    return actors::store_error{actors::store_error::kind::io,
                               "opening " + file.string() + ": " +
                                   std::generic_category().message(errno) +
                                   "; the data directory must be writable"};
  }
  // The directory itself is what is taken: a file in it may be removed while we run. The file says
  // who has it.
  const int taken = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  directory_lock lock(descriptor, taken);
  if (taken < 0 || ::flock(taken, LOCK_EX | LOCK_NB) != 0) {
    return actors::store_error{actors::store_error::kind::taken,
                               "another coordinator" + named_in(descriptor) + " has the store in " +
                                   directory.string() +
                                   "; stop it, or name another data directory"};
  }
  const std::string pid = std::to_string(::getpid()) + "\n";
  // The process id is for people only: the lock holds without it.
  if (::ftruncate(descriptor, 0) == 0) {
    [[maybe_unused]] const ssize_t written = ::pwrite(descriptor, pid.data(), pid.size(), 0);
  }
  return lock;
}

directory_lock::~directory_lock() {
  for (const int each : {file_, directory_}) {
    if (each >= 0) ::close(each);
  }
}

directory_lock::directory_lock(directory_lock&& other) noexcept
    : file_(std::exchange(other.file_, -1)), directory_(std::exchange(other.directory_, -1)) {}

directory_lock& directory_lock::operator=(directory_lock&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(directory_, other.directory_);
  return *this;
}

}  // namespace leasehold::storage
