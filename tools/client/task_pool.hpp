// A fixed number of threads that run tasks in the order in which they were given.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace leasehold::client {

class task_pool {
 public:
  explicit task_pool(std::size_t threads);
  /// Runs what was given, then ends.
  ~task_pool();
  task_pool(const task_pool&) = delete;
  task_pool& operator=(const task_pool&) = delete;

  /// From any thread. A task must not throw.
  void run(std::function<void()> task);

 private:
  void work();

  std::mutex lock_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace leasehold::client
