// Who may connect at all: the caps on connections and on handshakes that are under way.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "src/net_limits.hpp"

namespace leasehold::server {

/// Used by all threads of a listener.
class admission : public std::enable_shared_from_this<admission> {
 public:
  /// Counts one connection as long as it lives, and as a handshake until `established`.
  class ticket {
   public:
    ticket(std::shared_ptr<admission> from, std::string address, bool exempt);
    ~ticket();
    ticket(const ticket&) = delete;
    ticket& operator=(const ticket&) = delete;
    /// The first complete request has been read. Called on one thread.
    void established();
    /// Counts there too, from now on.
    void count_in(std::shared_ptr<std::atomic<std::int64_t>> place);

   private:
    std::shared_ptr<admission> from_;
    std::string address_;
    bool exempt_;
    bool handshaking_ = true;
    std::shared_ptr<std::atomic<std::int64_t>> place_;
  };

  enum class refusal : std::uint8_t {
    full,     ///< too many connections or handshakes: come back later
    address,  ///< too many handshakes from one address
  };
  struct outcome {
    std::unique_ptr<ticket> admitted;  ///< empty: refused for `why`
    refusal why = refusal::full;
  };

  explicit admission(const net_limits& limits);

  outcome admit(const std::string& address, bool loopback);
  [[nodiscard]] std::size_t connections() const;
  /// Whether the next one would be refused for want of room.
  [[nodiscard]] bool full() const;
  /// Waits until there is no connection; false when there is still one at `until`.
  bool wait_until_empty(std::chrono::steady_clock::time_point until);

 private:
  void leave_handshake(const std::string& address, bool exempt);
  void leave();
  [[nodiscard]] bool has_no_room() const;  // with the mutex

  const std::size_t connections_wanted_;
  const std::size_t reserved_descriptors_;
  const std::size_t handshake_cap_;
  const std::size_t handshakes_per_address_;
  mutable std::mutex mutex_;
  std::condition_variable emptied_;
  std::size_t connections_ = 0;
  std::size_t handshakes_ = 0;
  std::map<std::string, std::size_t> by_address_;  // of handshakes, addresses that are not exempt
};

/// How many connections fit the process: `wanted`, or less where the limit on open files less the
/// reserve is lower; at least 1. The limit may be changed while the process runs.
std::size_t connection_cap(std::size_t wanted, std::size_t reserved_descriptors);

}  // namespace leasehold::server
