// A job as the program that works on it sees it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "leasehold/client/notice.hpp"

namespace leasehold::client {

/// Why the work must stop.
enum class stop_reason : std::uint8_t {
  none,
  cancelled,     ///< somebody asked for it: stop and call stopped()
  lost,          ///< no authority any more; whatever it did may be done again by somebody else
  worker_stops,  ///< the worker was told to stop: hand the job back with release()
};

class job_work;

/// A handle; copies speak of the same job. May be used from any thread; no call blocks. When the
/// last copy is gone and nothing was reported, the job is reported failed and retryable.
class job {
 public:
  explicit job(std::shared_ptr<job_work> work) : work_(std::move(work)) {}

  [[nodiscard]] const std::string& id() const;
  [[nodiscard]] const std::string& queue() const;
  [[nodiscard]] const std::string& payload() const;
  /// From 1: how often the job was begun, handing back not counted.
  [[nodiscard]] std::int64_t attempt() const;
  /// The fencing token: give it to whatever the work writes to.
  [[nodiscard]] std::int64_t generation() const;
  /// The last progress of the generation before; "" if there was none.
  [[nodiscard]] const std::string& last_progress() const;
  [[nodiscard]] const std::string& trace_id() const;
  [[nodiscard]] protocol::duration lease_duration() const;
  [[nodiscard]] protocol::duration cancel_grace() const;

  /// When the work must have stopped, on this process's clock; each renew moves it.
  [[nodiscard]] local_time deadline() const;
  /// ms until then; 0 when it has passed.
  [[nodiscard]] protocol::duration remaining() const;
  [[nodiscard]] bool cancelled() const;
  [[nodiscard]] stop_reason stop() const;
  /// Calls `what` once when the work must stop, on a thread of the worker's; at once if it must by
  /// now.
  void on_stop(std::function<void(stop_reason)> what) const;

  /// Tells how far the work is: at most 1 KiB, the newest counts.
  void progress(std::string_view text) const;

  /// Names the process that works on the job, so that a cancel can end it should nobody else do so:
  /// one that leads its process group, on this machine. The newest call counts; name the process
  /// that does the work and not one that only starts it. False: there is no such process.
  bool register_process(std::int64_t pid) const;

  // How it ended; the first of these calls counts. A detail is at most 4 KiB; more is cut off.
  void complete(std::string_view detail = {}) const;
  void fail(std::string_view detail, bool retryable) const;
  /// The work has stopped because of stop(); `detail` says how.
  void stopped(std::string_view detail = {}) const;
  /// Hands the job back for somebody else; it has stopped here.
  void release() const;

 private:
  std::shared_ptr<job_work> work_;
};

}  // namespace leasehold::client
