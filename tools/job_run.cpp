#include "tools/job_run.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "leasehold/client/worker_session.hpp"

extern char** environ;

namespace leasehold::tools {
namespace {

using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::size_t detail_bytes = 4096;
constexpr std::size_t progress_bytes = 1024;
constexpr std::string_view progress_mark = "progress:";
constexpr int exit_try_again = 75;  // EX_TEMPFAIL
constexpr milliseconds longest_nap{1000};
constexpr milliseconds nap_without_exit{20};

/// Tells the thread that waits for the child that the work must stop.
class alarm_bell {
 public:
  alarm_bell() : bell_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  void ring() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = write(bell_.number(), &one, sizeof one);
  }
  [[nodiscard]] int number() const noexcept { return bell_.number(); }

 private:
  descriptor bell_;
};

/// Reads what is there; false at the end of the stream.
template <class Sink>
bool read_some(const descriptor& from, Sink sink) {
  std::array<char, 4096> buffer;
  const auto count = read(from.number(), buffer.data(), buffer.size());
  if (count > 0) sink(std::string_view(buffer.data(), static_cast<std::size_t>(count)));
  return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
}

std::string ending_text(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("the command was ended by signal {}", WTERMSIG(status));
  return fmt::format("the command exited with {}", WEXITSTATUS(status));
}

/// One child from its start to its report.
class run {
 public:
  run(const client::job& job, const run_options& options) : job_(job), options_(options) {}

  void follow(child_process& child);
  void report(int status) const;

 private:
  void feed_input(child_process& child);
  void read_messages(child_process& child);
  void read_output(child_process& child);
  void stop_when_asked(child_process& child);
  void drain(child_process& child);
  [[nodiscard]] milliseconds nap(const child_process& child) const;
  [[nodiscard]] milliseconds grace() const;

  const client::job& job_;
  const run_options& options_;
  std::size_t fed_ = 0;
  line_reader output_{detail_bytes};
  line_reader messages_{progress_bytes + progress_mark.size() + 1};
  std::optional<clock::time_point> kill_at_;  ///< set once TERM was sent
  bool stopped_ = false;                      ///< TERM was sent before the leader exited
};

/// What is left of authority bounds how long the command may take to stop.
milliseconds run::grace() const {
  const auto left = job_.stop() == client::stop_reason::lost
                        ? client::safety_margin(job_.lease_duration())
                        : job_.remaining();
  return milliseconds(std::min(options_.grace.ms, left.ms));
}

void run::feed_input(child_process& child) {
  const std::string_view rest = std::string_view(job_.payload()).substr(fed_);
  const auto count = rest.empty() ? 0 : write(child.input.number(), rest.data(), rest.size());
  if (count > 0) fed_ += static_cast<std::size_t>(count);
  const bool again = count < 0 && (errno == EAGAIN || errno == EINTR);
  if (fed_ == job_.payload().size() || (count < 0 && !again)) child.input.close();
}

void run::read_messages(child_process& child) {
  const bool more = read_some(child.messages, [&](std::string_view bytes) {
    for (const auto& line : messages_.feed(bytes)) {
      if (!line.starts_with(progress_mark)) continue;
      const auto text = std::string_view(line).substr(progress_mark.size());
      job_.progress(text.substr(std::min(text.find_first_not_of(' '), text.size())));
    }
  });
  if (!more) child.messages.close();
}

void run::read_output(child_process& child) {
  if (!read_some(child.output, [&](std::string_view bytes) { output_.feed(bytes); })) {
    child.output.close();
  }
}

void run::stop_when_asked(child_process& child) {
  if (job_.stop() == client::stop_reason::none) return;
  if (!kill_at_) {
    stopped_ = true;
    child.signal(SIGTERM);
    kill_at_ = clock::now() + grace();
  }
  // A loss after a cancel leaves less time.
  kill_at_ = std::min(*kill_at_, clock::now() + grace());
  if (clock::now() >= *kill_at_) child.signal(SIGKILL);
}

milliseconds run::nap(const child_process& child) const {
  auto nap = child.exit ? longest_nap : nap_without_exit;
  if (!kill_at_) return nap;
  const auto left = std::chrono::ceil<milliseconds>(*kill_at_ - clock::now());
  return std::clamp(left, milliseconds(1), nap);
}

/// What the command wrote before its end is still in the pipes.
void run::drain(child_process& child) {
  for (int turn = 0; turn < 64 && (child.output || child.messages); ++turn) {
    std::array<pollfd, 2> both{pollfd{child.output.number(), POLLIN, 0},
                               pollfd{child.messages.number(), POLLIN, 0}};
    if (poll(both.data(), both.size(), 0) <= 0) return;
    if (both[0].revents != 0) read_output(child);
    if (both[1].revents != 0) read_messages(child);
  }
}

void run::follow(child_process& child) {
  const auto bell = std::make_shared<alarm_bell>();
  job_.on_stop([bell](client::stop_reason) { bell->ring(); });
  bool bell_rang = false;
  while (!child.leader_exited()) {
    std::array<pollfd, 5> all{
        pollfd{child.input.number(), POLLOUT, 0}, pollfd{child.output.number(), POLLIN, 0},
        pollfd{child.messages.number(), POLLIN, 0}, pollfd{child.exit.number(), POLLIN, 0},
        pollfd{bell_rang ? -1 : bell->number(), POLLIN, 0}};
    poll(all.data(), all.size(), static_cast<int>(nap(child).count()));
    if (all[0].revents != 0) feed_input(child);
    if (all[1].revents != 0) read_output(child);
    if (all[2].revents != 0) read_messages(child);
    bell_rang = bell_rang || all[4].revents != 0;
    if (!child.leader_exited()) stop_when_asked(child);
  }
  drain(child);
}

void run::report(int status) const {
  const auto said = output_.last().empty() ? ending_text(status) : output_.last();
  if (stopped_) {
    switch (job_.stop()) {
      case client::stop_reason::cancelled:
        return job_.stopped(output_.last());
      case client::stop_reason::worker_stops:
        return job_.release();
      case client::stop_reason::lost:
      case client::stop_reason::none:
        break;
    }
    // Without authority any more; a cancel that came before still makes it a cancelled end.
    if (job_.cancelled()) return job_.stopped(output_.last());
    return job_.fail("the work was stopped because its lease was lost", true);
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return job_.complete(output_.last());
  const bool try_again = WIFEXITED(status) && WEXITSTATUS(status) == exit_try_again;
  job_.fail(said, try_again || options_.retry_any);
}

}  // namespace

// ---- lines -------------------------------------------------------------------------------------

std::vector<std::string> line_reader::feed(std::string_view bytes) {
  std::vector<std::string> lines;
  while (!bytes.empty()) {
    const auto end = bytes.find('\n');
    const auto part = bytes.substr(0, end);
    line_.append(part.substr(0, most_ - std::min(most_, line_.size())));
    if (end == bytes.npos) break;
    if (line_.ends_with('\r')) line_.pop_back();
    if (!line_.empty()) last_ = line_;
    lines.push_back(std::exchange(line_, {}));
    bytes.remove_prefix(end + 1);
  }
  return lines;
}

// ---- children ----------------------------------------------------------------------------------

void live_children::add(const child_process* child) {
  const std::lock_guard hold(lock_);
  children_.insert(child);
  if (ended_) child->signal(SIGKILL);
}

void live_children::remove(const child_process* child) {
  const std::lock_guard hold(lock_);
  children_.erase(child);
}

void live_children::kill_all() {
  const std::lock_guard hold(lock_);
  ended_ = true;
  for (const auto* child : children_) child->signal(SIGKILL);
}

bool live_children::killed() {
  const std::lock_guard hold(lock_);
  return ended_;
}

// ---- a job -------------------------------------------------------------------------------------

std::vector<std::string> job_environment(const client::job& job) {
  std::vector<std::string> all;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view entry(*each);
    if (!entry.starts_with("LEASEHOLD_")) all.emplace_back(entry);
  }
  all.push_back("LEASEHOLD_JOB_ID=" + job.id());
  all.push_back("LEASEHOLD_QUEUE=" + job.queue());
  all.push_back(fmt::format("LEASEHOLD_ATTEMPT={}", job.attempt()));
  all.push_back(fmt::format("LEASEHOLD_GENERATION={}", job.generation()));
  all.push_back(fmt::format("LEASEHOLD_TOKEN={}", job.generation()));
  all.push_back(fmt::format("LEASEHOLD_DEADLINE_MS={}", job.remaining().ms));
  if (!job.trace_id().empty()) all.push_back("LEASEHOLD_TRACEPARENT=" + job.trace_id());
  if (!job.last_progress().empty()) all.push_back("LEASEHOLD_LAST_PROGRESS=" + job.last_progress());
  return all;
}

void run_job(const client::job& job, const run_options& options, live_children& children) {
  if (job.stop() != client::stop_reason::none) {
    // Told to stop before it began.
    job.stop() == client::stop_reason::worker_stops ? job.release()
                                                    : job.stopped("the work was not begun");
    return;
  }
  const auto child =
      child_process::start({options.program, options.arguments, job_environment(job)});
  if (!child) {
    return job.fail(fmt::format("the command could not be started: {}", std::strerror(errno)),
                    true);
  }
  children.add(child.get());
  job.register_process(child->number());
  run work(job, options);
  work.follow(*child);
  children.remove(child.get());
  const int status = child->collect();
  // Killed because the worker was told twice to end: that says nothing about the job.
  if (children.killed() && WIFSIGNALED(status) && !job.cancelled()) return job.release();
  work.report(status);
}

}  // namespace leasehold::tools
