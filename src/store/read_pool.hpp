// A few threads for reads of the store, which block; the loops that decide never do.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace leasehold::storage {

/// Any thread.
class read_pool {
 public:
  explicit read_pool(std::size_t threads = 2, std::size_t most_waiting = 64);
  /// Finishes what runs, drops what waits, and joins.
  ~read_pool();
  read_pool(const read_pool&) = delete;
  read_pool& operator=(const read_pool&) = delete;

  /// False when as much waits as may; the read then is not done.
  [[nodiscard]] bool submit(std::function<void()> read);
  void stop();

 private:
  void run();

  const std::size_t most_waiting_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  bool stopped_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace leasehold::storage
