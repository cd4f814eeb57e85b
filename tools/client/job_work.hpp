// What the worker's loop and the handles of a job share.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>

#include "leasehold/client/job.hpp"
#include "leasehold/protocol/event.hpp"
#include "leasehold/protocol/process_handle.hpp"

namespace leasehold::client {

/// Where the handles of jobs tell what their work did; implemented by the worker's loop. Any
/// thread.
class job_reports {
 public:
  virtual ~job_reports() = default;
  virtual void progress(const grant& what, std::string value) = 0;
  virtual void register_process(const grant& what, const protocol::process_handle& process) = 0;
  virtual void finish(const grant& what, protocol::outcome how, std::string detail,
                      bool retryable) = 0;
};

class job_work {
 public:
  job_work(job_start facts, std::shared_ptr<job_reports> reports);
  ~job_work();
  job_work(const job_work&) = delete;
  job_work& operator=(const job_work&) = delete;

  [[nodiscard]] const job_start& facts() const noexcept { return facts_; }
  [[nodiscard]] local_time deadline() const noexcept { return {deadline_ms_.load()}; }
  void move_deadline(local_time to) noexcept { deadline_ms_ = to.ms; }
  [[nodiscard]] stop_reason stop() const noexcept { return stop_.load(); }
  [[nodiscard]] bool cancelled() const noexcept { return cancelled_.load(); }

  /// Notes that the work must stop and calls what waits for it. A loss counts more than a cancel.
  void must_stop(stop_reason why);
  void on_stop(std::function<void(stop_reason)> what);

  void progress(std::string_view text);
  void register_process(const protocol::process_handle& process);
  void finish(protocol::outcome how, std::string_view detail, bool retryable);

 private:
  job_start facts_;
  std::shared_ptr<job_reports> reports_;
  std::atomic<std::int64_t> deadline_ms_;
  std::atomic<stop_reason> stop_{stop_reason::none};
  std::atomic<bool> cancelled_{false};
  std::atomic<bool> finished_{false};
  std::mutex lock_;
  std::function<void(stop_reason)> waiting_;
};

}  // namespace leasehold::client
