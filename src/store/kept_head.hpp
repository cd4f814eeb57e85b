// Where the log ended not long ago, kept beside the database: a log that does not reach that far
// has lost its end, with a write-ahead log that was cut or removed or a file that was put back.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "leasehold/actors/store.hpp"

namespace leasehold::storage {

inline constexpr std::string_view kept_head_name = "head";

struct kept_head {
  std::optional<actors::log_head> head;
  /// Why there is none, in one sentence that names the file and says what follows from it.
  std::string why_none;
  bool is_missing = false;
};

kept_head read_kept_head(const std::filesystem::path& directory);

/// Writes it over as a whole. False when it could not be written.
bool keep_head(const std::filesystem::path& directory, const actors::log_head& head);

/// Keeps heads on a thread of its own, at most one a second and always the newest: the one who
/// commits does not wait for it.
class head_keeper {
 public:
  explicit head_keeper(std::filesystem::path directory);
  ~head_keeper();
  head_keeper(const head_keeper&) = delete;
  head_keeper& operator=(const head_keeper&) = delete;

  /// `head` must be durable.
  void keep(const actors::log_head& head);
  /// Drops what waits, and returns when nothing is written any more.
  void stop();

 private:
  void run();

  std::filesystem::path directory_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<actors::log_head> waiting_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace leasehold::storage
