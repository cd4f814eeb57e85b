// Where processes that race wait for each other: counters in a file that all of them map.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <new>

#include "support/eventually.hpp"

namespace leasehold::tests {

class race_board {
 public:
  static constexpr std::size_t most_rounds = 1024;

  /// Made by the first one to come; a new file is all zeros.
  explicit race_board(const std::filesystem::path& file) {
    const int number = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (number < 0 || ftruncate(number, sizeof(rounds)) != 0) throw std::bad_alloc();
    void* at = mmap(nullptr, sizeof(rounds), PROT_READ | PROT_WRITE, MAP_SHARED, number, 0);
    close(number);
    if (at == MAP_FAILED) throw std::bad_alloc();
    rounds_ = static_cast<rounds*>(at);
  }
  ~race_board() { munmap(rounds_, sizeof(rounds)); }
  race_board(const race_board&) = delete;
  race_board& operator=(const race_board&) = delete;

  /// Goes on once so many have come to this round; false when they do not come.
  bool meet(std::size_t round, std::uint32_t racers) {
    auto& here = rounds_->at(round);
    here.fetch_add(1);
    return eventually([&] { return here.load() >= racers; }, std::chrono::seconds{60},
                      std::chrono::milliseconds{0});
  }

 private:
  using rounds = std::array<std::atomic<std::uint32_t>, most_rounds>;
  static_assert(std::atomic<std::uint32_t>::is_always_lock_free);
  rounds* rounds_ = nullptr;
};

}  // namespace leasehold::tests
