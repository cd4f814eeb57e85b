#include "src/store/kept_head.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

#include "src/store/verify.hpp"

namespace leasehold::storage {

namespace {

constexpr std::chrono::seconds least_pause{1};
/// Always as long, so that it is written over within its one sector: that is old or new as a whole,
/// costs no change of the directory, and takes no room on a full disk.
constexpr std::size_t kept_bytes = 96;

/// Nothing when it is no file that can be read. Of a long one only the beginning.
std::optional<std::string> content_of(int descriptor) {
  struct stat what {};
  if (::fstat(descriptor, &what) != 0 || !S_ISREG(what.st_mode)) return std::nullopt;
  std::array<char, 256> text{};
  const ssize_t size = ::pread(descriptor, text.data(), text.size(), 0);
  if (size < 0) return std::nullopt;
  return std::string(text.data(), static_cast<std::size_t>(size));
}

}  // namespace

kept_head read_kept_head(const std::filesystem::path& directory) {
  const std::filesystem::path file = directory / kept_head_name;
  kept_head out;
  // Of a pipe the other end would be waited for.
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  out.is_missing = descriptor < 0 && errno == ENOENT;
  const auto text = descriptor < 0 ? std::nullopt : content_of(descriptor);
  if (descriptor >= 0) ::close(descriptor);
  if (text) out.head = head_from_text(std::string_view(*text).substr(0, text->find('\n')));
  if (out.head) return out;
  const char* what = out.is_missing ? " is missing" : " does not say where the log ended";
  if (!out.is_missing && !text) what = " is no file that can be read; remove it";
  out.why_none = file.string() + what +
                 ": a log that has lost its end would not be noticed. It is written anew by a "
                 "coordinator that runs";
  return out;
}

bool keep_head(const std::filesystem::path& directory, const actors::log_head& head) {
  const std::filesystem::path file = directory / kept_head_name;
  const int descriptor = ::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600);
  if (descriptor < 0) return false;
  std::string text = to_text(head) + "\n";
  text.resize(std::max(text.size(), kept_bytes), '\n');
  const bool written =
      ::pwrite(descriptor, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()) &&
      ::fdatasync(descriptor) == 0;
  ::close(descriptor);
  return written;
}

head_keeper::head_keeper(std::filesystem::path directory) : directory_(std::move(directory)) {
  thread_ = std::thread([this] { run(); });
}

head_keeper::~head_keeper() { stop(); }

void head_keeper::keep(const actors::log_head& head) {
  {
    const std::lock_guard lock(mutex_);
    waiting_ = head;
  }
  changed_.notify_one();
}

void head_keeper::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void head_keeper::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || waiting_; });
    if (stopping_) return;
    const auto head = *std::exchange(waiting_, std::nullopt);
    lock.unlock();
    keep_head(directory_, head);
    lock.lock();
    changed_.wait_for(lock, least_pause, [this] { return stopping_; });
  }
}

}  // namespace leasehold::storage
