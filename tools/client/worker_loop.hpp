// The worker's own thread: the session, the link, the chaos between them.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <random>
#include <thread>

#include "job_work.hpp"
#include "leasehold/client/worker.hpp"
#include "leasehold/protocol/codec.hpp"
#include "stream_link.hpp"
#include "task_pool.hpp"

namespace leasehold::client {

/// The way of reports to a loop that may end before the jobs do.
class report_door final : public job_reports {
 public:
  explicit report_door(job_reports* behind) : behind_(behind) {}
  void shut() {
    const std::lock_guard hold(lock_);
    behind_ = nullptr;
  }
  void progress(const grant& what, std::string value) override {
    const std::lock_guard hold(lock_);
    if (behind_ != nullptr) behind_->progress(what, std::move(value));
  }
  void register_process(const grant& what, const protocol::process_handle& process) override {
    const std::lock_guard hold(lock_);
    if (behind_ != nullptr) behind_->register_process(what, process);
  }
  void finish(const grant& what, protocol::outcome how, std::string detail,
              bool retryable) override {
    const std::lock_guard hold(lock_);
    if (behind_ != nullptr) behind_->finish(what, how, std::move(detail), retryable);
  }

 private:
  std::mutex lock_;
  job_reports* behind_;
};

class worker::loop final : public link_events, public job_reports {
 public:
  loop(worker_options options, std::vector<stream_address> addresses);
  ~loop() override;

  void start();
  void drain();
  /// Everything that runs must stop; each job hears of it.
  void ask_to_stop();
  /// Says goodbye, closes and ends the thread; nothing is heard of jobs afterwards.
  void leave();

  [[nodiscard]] std::size_t running() const noexcept { return running_; }
  [[nodiscard]] std::size_t open() const noexcept { return open_; }
  [[nodiscard]] bool connected() const noexcept { return connected_; }
  [[nodiscard]] bool ended() const noexcept { return ended_; }

  // ---- job_reports, on any thread
  void progress(const grant& what, std::string value) override;
  void register_process(const grant& what, const protocol::process_handle& process) override;
  void finish(const grant& what, protocol::outcome how, std::string detail,
              bool retryable) override;

 private:
  // ---- link_events, on the loop
  void on_open() override;
  void on_message(std::span<const std::byte> message) override;
  void on_end(const link_end& how) override;
  void on_wake() override;

  /// Takes in what has arrived, sends what is due, tells what happened, sets the next alarm.
  void turn();
  void receive_due(local_time now);
  void send_due(local_time now);
  void write(std::span<const protocol::worker_frame> frames);
  void set_alarm(local_time now);
  void connect();
  void connect_later(local_time now, const link_end& how);
  void give_up(std::string why, int http_status = 0);
  void close_when_said();
  void count();

  void on(const job_start& what);
  void on(const job_deadline& what);
  void on(const job_cancel& what);
  void on(const job_lost& what);
  void on(const job_closed& what);
  void on(const session_ready& what);
  void on(const session_drain& what);
  void on(const session_over& what);
  void tell(worker_event::kind what, std::string text, grant about = {}, int http_status = 0);
  void stop_job(const grant& what, stop_reason why);

  worker_options options_;
  std::vector<stream_address> addresses_;
  std::size_t next_address_ = 0;
  std::optional<stream_address> sent_to_;  ///< where a draining coordinator sends us
  worker_session session_;
  protocol::codec codec_;
  chaos_channel<protocol::worker_frame> to_coordinator_;
  chaos_channel<protocol::coordinator_frame> to_worker_;
  bool socket_open_ = false;
  bool was_ready_ = false;  ///< a coordinator took this worker before
  bool leaving_ = false;
  std::int64_t failures_ = 0;
  std::optional<local_time> connect_at_;
  std::mt19937_64 random_;
  std::map<grant, std::weak_ptr<job_work>> works_;
  std::shared_ptr<report_door> door_ = std::make_shared<report_door>(this);

  std::atomic<std::size_t> running_{0};
  std::atomic<std::size_t> open_{0};
  std::atomic<bool> connected_{false};
  std::atomic<bool> ended_{false};

  std::unique_ptr<stream_link> link_;
  task_pool told_;                   ///< one thread for on_event and on_stop
  std::unique_ptr<task_pool> pool_;  ///< for on_job, where the program brings no executor
  std::thread thread_;
};

}  // namespace leasehold::client
