// A holder of a load: acquires locks of its own and releases them again, so many in a message, one
// message unanswered at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "leasehold/protocol/codec.hpp"
#include "load_stream.hpp"
#include "server_clock.hpp"

namespace leasehold::bench {

struct lock_tally {
  std::int64_t pairs = 0;  ///< acquired and released
  std::int64_t refused = 0;
  protocol::reason refusal{};               ///< of the last that was
  std::vector<std::uint32_t> latencies_us;  ///< of messages, to their last answer
};

class lock_worker {
 public:
  struct options {
    std::uint16_t port = 0;
    std::string token;
    std::string incarnation;
    std::size_t batch = 1;  ///< locks that it has, all in one message
  };

  explicit lock_worker(const options& how);

  [[nodiscard]] load_socket& socket() noexcept { return stream_.socket(); }
  [[nodiscard]] bool idle() const noexcept { return unanswered_ == 0; }
  void go_on(bool on) noexcept { goes_on_ = on; }
  /// Takes what has come and says what follows.
  void turn();
  lock_tally take_tally() { return std::exchange(tally_, {}); }

 private:
  void hear(const protocol::coordinator_frame& frame);
  void answered(const protocol::frame_verdict& what);
  void acquire_all();
  void release_all();
  void say();

  options how_;
  load_stream stream_;
  protocol::codec codec_{protocol::encoding::protobuf};
  protocol::holder holder_;
  server_clock clock_;
  std::vector<protocol::worker_frame> frames_;
  std::string bytes_;
  std::vector<protocol::lease_standing> held_;
  std::chrono::steady_clock::time_point sent_;
  std::int64_t next_frame_ = 1;
  std::int64_t next_request_ = 1;
  std::size_t unanswered_ = 0;
  bool goes_on_ = true;
  bool welcome_ = false;
  lock_tally tally_;
};

}  // namespace leasehold::bench
