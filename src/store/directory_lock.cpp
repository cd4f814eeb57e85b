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

std::string pid_in(int descriptor) {
  std::array<char, 20> text{};
  const ssize_t size = ::pread(descriptor, text.data(), text.size(), 0);
  std::string pid(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  const std::size_t end = pid.find_first_not_of("0123456789");
  return pid.substr(0, end);
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
  directory_lock lock(descriptor);
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    return actors::store_error{actors::store_error::kind::taken,
                               "another coordinator (process " + pid_in(descriptor) +
                                   ") has the store in " + directory.string() +
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
  if (descriptor_ >= 0) ::close(descriptor_);
}

directory_lock::directory_lock(directory_lock&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

directory_lock& directory_lock::operator=(directory_lock&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

}  // namespace leasehold::storage
