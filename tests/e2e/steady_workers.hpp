// Workers that renew without a pause while something else goes on, and what came of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "bench/renew_worker.hpp"
#include "live_server.hpp"

namespace leasehold::e2e {

class steady_workers {
 public:
  /// Takes the leases: `count` workers with two each, every one as long as `lease`.
  explicit steady_workers(live_server& server, std::size_t count = 3,
                          std::chrono::milliseconds lease = std::chrono::milliseconds{10'000});

  /// Renews what is due and takes what has come. Called again and again, while all else waits.
  void turn();
  /// Renews once more, and expects that every renew was answered and accepted, and that no lease
  /// was lost.
  void expect_unharmed();

 private:
  void renew();
  void poll();

  std::vector<bench::renew_worker> workers_;
  std::chrono::steady_clock::time_point due_ = std::chrono::steady_clock::now();
  std::int64_t asked_ = 0;
};

}  // namespace leasehold::e2e
