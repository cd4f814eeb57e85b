// Ends the processes of cancelled attempts on this machine: TERM, a grace, KILL, and before each of
// them the proof that the process is the registered one (process_proof.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>

#include "leasehold/actors/dispatch.hpp"
#include "leasehold/protocol/units.hpp"
#include "src/controllers/process_proof.hpp"

namespace leasehold::controllers {

struct process_options {
  std::string boot_id;                        ///< of this start of this machine
  std::function<std::int64_t()> boottime_ms;  ///< counts suspend, knows no steps
  protocol::duration term_grace{10'000};      ///< from TERM to KILL
  protocol::duration kill_wait{5'000};        ///< from KILL to the answer
  protocol::duration claim{30'000};           ///< how long the claims are that it acts under
  group_signal signal = group_signal::at_once;
};

/// One thread waits for all processes. It answers with
/// - already_exited: the process and its group have ended, before or because of the signals;
/// - termination_requested: they are there in spite of KILL, for instance in a driver;
/// - identity_mismatch, pid_mismatch, unsupported, invalid: not proven; from then on no signal;
/// - handle_missing: none is registered;
/// - dispatch_error: this machine has no descriptor, or does not let us look or signal.
/// It answers nothing once the claim is over, and no signal is sent after that. Destroying it stops
/// at once: those it waits for get no answer.
class process_controller final : public actors::execution_controller {
 public:
  /// A sentence when term_grace and kill_wait together are not shorter than the claim, when one of
  /// them is negative, or when the machine has no boot id.
  static std::variant<std::shared_ptr<process_controller>, std::string> start(process_options how);
  ~process_controller() override;
  process_controller(const process_controller&) = delete;
  process_controller& operator=(const process_controller&) = delete;

  void act(const actors::dispatch_claimed& claim,
           std::function<void(protocol::dispatch_result)> done) override;

 private:
  class watch;
  explicit process_controller(std::unique_ptr<watch> what);
  std::unique_ptr<watch> watch_;
};

}  // namespace leasehold::controllers
