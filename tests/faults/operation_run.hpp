// An operation while what is under its store fails, and what must be true afterwards: what is
// refused never happened, what was answered stays, and the coordinator goes on.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "operations.hpp"

namespace leasehold::tests {

/// What is under a store, and fails when it is told to.
class failing_ground {
 public:
  virtual ~failing_ground() = default;
  /// A store that nobody has used, instead of the one before.
  virtual log_place& fresh() = 0;
  /// How often it has failed since it was told to.
  [[nodiscard]] virtual int hits() const = 0;
  virtual void mend() = 0;
};

struct tally_of_cases {
  int cases = 0;
  int done = 0;
  int refused = 0;
  int ended = 0;
};

class operation_run {
 public:
  /// Runs it once without a fault, for the comparison.
  operation_run(const operation& tried, failing_ground& ground);

  /// Whether the fault that `fail` sets was hit. `lasts`: it is there until it is mended.
  bool with(const std::function<void()>& fail, bool lasts);
  /// For a person.
  [[nodiscard]] std::string summary() const;
  [[nodiscard]] const tally_of_cases& tally() const { return tally_; }

 private:
  void begin();
  void expect_nothing_happened(const std::string& before, bool lasts);
  void expect_going_on(ending said);
  void expect_recovery(ending said, const std::vector<protocol::stored_row>& rows);
  void expect_kept(const std::vector<protocol::stored_row>& rows);

  const operation& tried_;
  failing_ground& ground_;
  log_place* place_ = nullptr;
  std::shared_ptr<manual_clock> clock_;
  std::unique_ptr<scene> scene_;
  std::string outcome_;
  std::vector<std::string> history_;
  tally_of_cases tally_;
};

}  // namespace leasehold::tests
