#include "leasehold/client/job.hpp"

#include <algorithm>
#include <utility>

#include "job_work.hpp"
#include "leasehold/client/process_identity.hpp"
#include "stream_link.hpp"

namespace leasehold::client {

// ---- what is shared ----------------------------------------------------------------------------

job_work::job_work(job_start facts, std::shared_ptr<job_reports> reports)
    : facts_(std::move(facts)), reports_(std::move(reports)), deadline_ms_(facts_.deadline.ms) {}

job_work::~job_work() {
  finish(protocol::outcome::failed, "the work ended without a report", true);
}

void job_work::must_stop(stop_reason why) {
  std::function<void(stop_reason)> told;
  {
    const std::lock_guard hold(lock_);
    if (why == stop_reason::cancelled) cancelled_ = true;
    if (stop_ == stop_reason::lost) return;
    if (stop_ == stop_reason::none) told = std::exchange(waiting_, nullptr);
    stop_ = why;
  }
  if (told) told(why);
}

void job_work::on_stop(std::function<void(stop_reason)> what) {
  {
    const std::lock_guard hold(lock_);
    if (stop_ == stop_reason::none) {
      waiting_ = std::move(what);
      return;
    }
  }
  what(stop_);
}

void job_work::progress(std::string_view text) {
  if (!finished_) reports_->progress(facts_.what, std::string(text.substr(0, 4096)));
}

void job_work::register_process(const protocol::process_handle& process) {
  if (!finished_) reports_->register_process(facts_.what, process);
}

void job_work::finish(protocol::outcome how, std::string_view detail, bool retryable) {
  if (finished_.exchange(true)) return;
  reports_->finish(facts_.what, how, std::string(detail.substr(0, 16384)), retryable);
}

// ---- the handle --------------------------------------------------------------------------------

const std::string& job::id() const { return work_->facts().job.value; }
const std::string& job::queue() const { return work_->facts().queue; }
const std::string& job::payload() const { return work_->facts().payload; }
std::int64_t job::attempt() const { return work_->facts().attempt; }
std::int64_t job::generation() const { return work_->facts().what.gen.value; }
const std::string& job::last_progress() const { return work_->facts().last_progress; }
const std::string& job::trace_id() const { return work_->facts().trace_id; }
protocol::duration job::lease_duration() const { return work_->facts().lease_duration; }
protocol::duration job::cancel_grace() const { return work_->facts().cancel_grace; }
local_time job::deadline() const { return work_->deadline(); }
protocol::duration job::remaining() const {
  return {std::max<std::int64_t>(0, work_->deadline().ms - local_now().ms)};
}
bool job::cancelled() const { return work_->cancelled(); }
stop_reason job::stop() const { return work_->stop(); }
void job::on_stop(std::function<void(stop_reason)> what) const { work_->on_stop(std::move(what)); }

void job::progress(std::string_view text) const { work_->progress(text); }
bool job::register_process(std::int64_t pid) const {
  const auto process = identify_process(pid);
  if (process) work_->register_process(*process);
  return process.has_value();
}
void job::complete(std::string_view detail) const {
  work_->finish(protocol::outcome::success, detail, false);
}
void job::fail(std::string_view detail, bool retryable) const {
  work_->finish(protocol::outcome::failed, detail, retryable);
}
void job::stopped(std::string_view detail) const {
  work_->finish(protocol::outcome::cancelled, detail, true);
}
void job::release() const { work_->finish(protocol::outcome::none, "handed back", true); }

}  // namespace leasehold::client
