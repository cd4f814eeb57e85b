#include "src/store/read_pool.hpp"

#include <utility>

namespace leasehold::storage {

read_pool::read_pool(std::size_t threads, std::size_t most_waiting) : most_waiting_(most_waiting) {
  for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
}

read_pool::~read_pool() { stop(); }

bool read_pool::submit(std::function<void()> read) {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_ || waiting_.size() >= most_waiting_) return false;
    waiting_.push_back(std::move(read));
  }
  changed_.notify_one();
  return true;
}

void read_pool::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    waiting_.clear();
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void read_pool::run() {
  while (true) {
    std::function<void()> read;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopped_ || !waiting_.empty(); });
      if (stopped_) return;
      read = std::move(waiting_.front());
      waiting_.pop_front();
    }
    read();
  }
}

}  // namespace leasehold::storage
