#include "task_pool.hpp"

#include <utility>

namespace leasehold::client {

task_pool::task_pool(std::size_t threads) {
  threads_.reserve(threads);
  for (std::size_t n = 0; n < threads; ++n) threads_.emplace_back([this] { work(); });
}

task_pool::~task_pool() {
  {
    const std::lock_guard hold(lock_);
    ending_ = true;
  }
  wake_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void task_pool::run(std::function<void()> task) {
  {
    const std::lock_guard hold(lock_);
    tasks_.push_back(std::move(task));
  }
  wake_.notify_one();
}

void task_pool::work() {
  for (;;) {
    std::function<void()> task;
    {
      std::unique_lock hold(lock_);
      wake_.wait(hold, [&] { return ending_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

}  // namespace leasehold::client
