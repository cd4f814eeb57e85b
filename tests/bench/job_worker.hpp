// A worker of a load that takes every job it is offered through its whole life: ACK, one renew,
// success.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "leasehold/protocol/codec.hpp"
#include "load_stream.hpp"
#include "server_clock.hpp"

namespace leasehold::bench {

struct job_tally {
  std::int64_t ended = 0;  ///< with success
  std::int64_t refused = 0;
  protocol::reason refusal{};               ///< of the last that was
  std::vector<std::uint32_t> latencies_us;  ///< from the offer to the answered result
};

class job_worker {
 public:
  struct options {
    std::uint16_t port = 0;
    std::string token;
    std::string incarnation;
    std::string queue = "q";
    std::int64_t slots = 64;
  };

  explicit job_worker(const options& how);

  [[nodiscard]] load_socket& socket() noexcept { return stream_.socket(); }
  /// Takes what has come and says what follows.
  void turn();
  job_tally take_tally() { return std::exchange(tally_, {}); }

 private:
  using clock = std::chrono::steady_clock;
  struct held_job {
    protocol::generation gen;
    clock::time_point offered;
  };

  void hear(const protocol::coordinator_frame& frame);
  void answered(const protocol::frame_verdict& what);
  void put(protocol::event_kind kind, const protocol::lease_id& lease, protocol::generation gen);
  void say();

  options how_;
  load_stream stream_;
  protocol::codec codec_{protocol::encoding::protobuf};
  protocol::holder holder_;
  server_clock clock_;
  std::vector<protocol::worker_frame> frames_;
  std::string bytes_;
  std::unordered_map<std::string, held_job> held_;
  std::int64_t next_frame_ = 1;
  job_tally tally_;
};

}  // namespace leasehold::bench
