// Histories of leases for tests of the store: random but seeded streams of events, decided by the
// rules and written as a coordinator writes them.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "leasehold/actors/store.hpp"
#include "leasehold/protocol/rules.hpp"
#include "tests/protocol/property_streams.hpp"

namespace leasehold::tests {

class history {
 public:
  history(actors::store& to, std::uint32_t seed) : to_(to), random_(seed) {}

  /// Makes a lease known: a policy row and a submit row with a body.
  void submit(const std::string& name);
  /// So many random events over all leases, each in a group of its own or with the one before.
  void wander(int events);
  /// One event of one lease at a time at or after now.
  void happen(const std::string& name, protocol::event what, std::int64_t after_ms = 1);
  /// A job that goes as it should: offered, progress before the ACK, ACKed, renewed, still active.
  void work(const std::string& name);
  /// What a start does: deadlines, graces, what is still due.
  void restart(std::int64_t after_ms);
  /// Writes a base row for every lease, as before a cut.
  void base_all();
  /// Forgets a settled job.
  void forget(const std::string& name);
  /// A checkpoint as of now.
  void checkpoint();
  /// The records as of now.
  [[nodiscard]] std::map<protocol::lease_key, protocol::fold::lease_image> images() const;
  [[nodiscard]] protocol::row_number last_row() const { return last_row_; }

 private:
  struct lease {
    protocol::lease_key key;
    protocol::policy chosen;
    protocol::fold::lease_image image;
  };

  protocol::row_number append(std::string framed);
  template <class Decide>
  void write(lease& about, protocol::instant ingress, const Decide& decide);
  choice random_choice();

  actors::store& to_;
  std::mt19937 random_;
  std::map<std::string, lease> leases_;
  protocol::instant now_{1'700'000'000'000};
  protocol::row_number last_row_;
  int policies_ = 0;
  std::vector<protocol::lease_key> forgotten_;
  actors::store_state state_;
};

}  // namespace leasehold::tests
