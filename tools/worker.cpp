// `leasehold worker`: takes jobs of some queues and runs a command for each.
#include <fmt/format.h>
#include <signal.h>

#include <atomic>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <charconv>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "leasehold/client/worker.hpp"
#include "tools/api.hpp"
#include "tools/arguments.hpp"
#include "tools/job_run.hpp"
#include "tools/output.hpp"
#include "tools/subcommands.hpp"
#include "tools/terminal.hpp"

namespace leasehold::tools {
namespace {

using client::worker_event;

constexpr std::int64_t look_interval_ms = 100;
/// Between KILL and the end of a group.
constexpr std::int64_t most_after_kill_ms = 2000;

constexpr std::string_view footer = R"(
For each job CMD runs in a process group of its own. It gets
  standard input   the job's payload
  LEASEHOLD_JOB_ID, LEASEHOLD_QUEUE, LEASEHOLD_ATTEMPT
  LEASEHOLD_GENERATION, and as LEASEHOLD_TOKEN the same number: the fencing token
  LEASEHOLD_DEADLINE_MS    ms until the lease ends if no renew is accepted (the worker renews it)
  LEASEHOLD_TRACEPARENT    W3C trace context, if the job has one
  LEASEHOLD_LAST_PROGRESS  the last progress of the attempt before, if there was one
and no other LEASEHOLD_ variable. A line "progress: TEXT" on descriptor 3 becomes the job's progress.
The last line that is not empty of its standard output, up to 4 KiB, becomes the result's detail.
Exit status 0 is success, 75 a failure that may be tried again, everything else a failure that is
final (with --retry that may be tried again too). When the command exits, what it left running in its
group is killed.

On a cancel, or when the lease is lost, the group gets TERM, and KILL after --grace or when authority
ends, whichever is sooner; a cancelled job is reported cancelled once the group is gone. TERM or INT
to the worker: it takes no more jobs, lets those that run end within --drain-timeout, hands back the
others, and says goodbye; a second TERM or INT kills the commands at once.

Examples:
  leasehold worker --queue mail -- ./send-mail
  leasehold worker --queue images:4 --queue video --label gpu=yes -- python3 convert.py
  leasehold worker --queue q --chaos reorder=0.3,dup=0.1,drop=0.05,delay=5..80ms,seed=7 -- cat
)";

struct worker_settings {
  std::vector<std::string> queues;
  std::vector<std::string> labels;
  std::vector<std::string> more_urls;
  std::vector<std::string> command;
  std::string chaos;
  std::string exit_when_idle;
  std::string grace = "5s";
  std::string drain_timeout = "30s";
  std::int64_t slots = 1;
  bool retry = false;
  bool wire_json = false;
};

/// What the settings mean, or why they cannot be meant.
struct worker_plan {
  client::worker_options options;
  run_options run;
  std::int64_t idle_ms = -1;  ///< -1: for ever
  std::int64_t drain_ms = 0;
  std::string fault;
};

std::int64_t length(const std::string& text, std::string_view name, std::string& fault) {
  const auto ms = read_length_ms(text);
  if (!ms)
    fault =
        fmt::format("--{} \"{}\" is not a length of time, such as 500ms, 30s or 5m", name, text);
  return ms.value_or(0);
}

protocol::labels worker_labels(const std::vector<std::string>& pairs, std::string& fault) {
  protocol::labels labels;
  for (const auto& [key, value] : read_labels(pairs, fault)) {
    labels.emplace(key, value.is_string() ? std::string(value.as_string()) : std::string());
  }
  return labels;
}

/// "QUEUE" or "QUEUE:SLOTS".
client::queue_slots read_queue(const std::string& text, const worker_settings& chosen,
                               std::string& fault) {
  client::queue_slots queue{.queue = text, .slots = chosen.slots, .labels = {}};
  const auto colon = text.rfind(':');
  if (colon != text.npos) {
    const auto* begin = text.data() + colon + 1;
    const auto* end = text.data() + text.size();
    std::int64_t slots = 0;
    const auto [stop, error] = std::from_chars(begin, end, slots);
    if (error == std::errc{} && stop == end) queue = {text.substr(0, colon), slots, {}};
  }
  if (queue.queue.empty()) fault = fmt::format("--queue \"{}\" names no queue", text);
  return queue;
}

void plan_chaos(const std::string& text, worker_plan& plan) {
  if (text.empty()) return;
  auto parsed = client::parse_chaos(text);
  if (auto* wrong = std::get_if<std::string>(&parsed)) {
    plan.fault = *wrong;
  } else {
    plan.options.chaos = std::get<client::chaos_options>(parsed);
  }
}

void plan_command(const worker_settings& chosen, worker_plan& plan) {
  plan.run.arguments = chosen.command;
  plan.run.retry_any = chosen.retry;
  if (chosen.command.empty()) {
    plan.fault = "there is no command to run; put it after --";
    return;
  }
  plan.run.program = find_program(chosen.command.front());
  if (plan.run.program.empty()) {
    plan.fault = fmt::format("there is no program \"{}\" that can be run", chosen.command.front());
  }
}

std::vector<std::string> split_urls(std::string_view text) {
  std::vector<std::string> all;
  for (;;) {
    const auto comma = text.find(',');
    all.emplace_back(text.substr(0, comma));
    if (comma == text.npos) return all;
    text.remove_prefix(comma + 1);
  }
}

worker_plan make_plan(const worker_settings& chosen, const command_line& line) {
  worker_plan plan;
  auto& options = plan.options;
  options.urls = split_urls(line.url);
  options.urls.insert(options.urls.end(), chosen.more_urls.begin(), chosen.more_urls.end());
  options.ca_file = line.ca_file;
  options.cert_file = line.cert_file;
  options.key_file = line.key_file;
  options.client_name = "leasehold-worker";
  options.client_version = LEASEHOLD_VERSION;
  options.json = chosen.wire_json;
  const auto labels = worker_labels(chosen.labels, plan.fault);
  for (const auto& text : chosen.queues) {
    options.queues.push_back(read_queue(text, chosen, plan.fault));
    options.queues.back().labels = labels;
  }
  plan.run.grace = {length(chosen.grace, "grace", plan.fault)};
  plan.drain_ms = length(chosen.drain_timeout, "drain-timeout", plan.fault);
  if (!chosen.exit_when_idle.empty()) {
    plan.idle_ms = length(chosen.exit_when_idle, "exit-when-idle", plan.fault);
  }
  plan_chaos(chosen.chaos, plan);
  plan_command(chosen, plan);
  if (plan.fault.empty()) options.token = bearer_token(line, plan.fault);
  return plan;
}

// ---- what people see ---------------------------------------------------------------------------

/// Says what happens, a line each, from any thread.
class speaker {
 public:
  explicit speaker(bool json) : json_(json) {}

  void say(std::string_view event, std::string_view job, std::string_view text) {
    const std::lock_guard hold(lock_);
    if (json_) {
      boost::json::object line{{"event", event}};
      if (!job.empty()) line["job_id"] = job;
      if (!text.empty()) line["text"] = text;
      print("{}\n", boost::json::serialize(line));
    } else {
      print("{:<12} {}{}{}\n", event, printable(job), job.empty() || text.empty() ? "" : "  ",
            printable(text));
    }
    flush_output();
  }

 private:
  bool json_;
  std::mutex lock_;
};

std::string_view word(worker_event::kind what) {
  switch (what) {
    case worker_event::kind::connected:
      return "connected";
    case worker_event::kind::disconnected:
      return "disconnected";
    case worker_event::kind::draining:
      return "draining";
    case worker_event::kind::closed:
      return "closed";
    case worker_event::kind::ended:
      return "ended";
  }
  return "";
}

// ---- the process -------------------------------------------------------------------------------

sigset_t stop_signals() {
  sigset_t both;
  sigemptyset(&both);
  sigaddset(&both, SIGTERM);
  sigaddset(&both, SIGINT);
  return both;
}

/// True when one of the stop signals came within the time.
bool stop_signal_within(std::int64_t ms) {
  const auto both = stop_signals();
  const timespec most{ms / 1000, (ms % 1000) * 1'000'000};
  return sigtimedwait(&both, nullptr, &most) > 0;
}

/// A worker, its commands, and what it says.
class running_worker {
 public:
  running_worker(worker_plan plan, bool json) : plan_(std::move(plan)), speaker_(json) {}

  exit_code run();

 private:
  void work(const client::job& job);
  void hear(const worker_event& event);
  void wait_for_the_end(const client::worker& worker);
  bool stop(client::worker& worker);

  worker_plan plan_;
  speaker speaker_;
  live_children children_;
  std::string last_fault_;
  std::atomic<int> http_status_{0};
};

void running_worker::work(const client::job& job) {
  speaker_.say("started", job.id(),
               fmt::format("generation {} attempt {}", job.generation(), job.attempt()));
  run_job(job, plan_.run, children_);
}

void running_worker::hear(const worker_event& event) {
  if (event.what == worker_event::kind::disconnected) {
    if (event.text == last_fault_) return;  // the same again is not news
    last_fault_ = event.text;
  }
  if (event.what == worker_event::kind::connected) last_fault_.clear();
  if (event.http_status != 0) http_status_ = event.http_status;
  speaker_.say(word(event.what), event.about.lease.value, event.text);
}

void running_worker::wait_for_the_end(const client::worker& worker) {
  std::int64_t idle_ms = 0;
  while (!worker.ended() && !stop_signal_within(look_interval_ms)) {
    idle_ms = worker.connected() && worker.open() == 0 ? idle_ms + look_interval_ms : 0;
    if (plan_.idle_ms >= 0 && idle_ms > plan_.idle_ms) {
      speaker_.say("idle", "", "nothing to do; the worker ends");
      return;
    }
  }
}

bool running_worker::stop(client::worker& worker) {
  std::atomic<bool> over{false};
  bool clean = false;
  std::thread stopping([&] {
    clean = worker.stop({plan_.drain_ms}, {plan_.run.grace.ms + most_after_kill_ms});
    over = true;
  });
  while (!over) {
    if (stop_signal_within(look_interval_ms)) children_.kill_all();
  }
  stopping.join();
  return clean;
}

exit_code refused_for_ever(int http_status) {
  if (http_status == 403) {
    return complain(exit_code::forbidden,
                    "the token has not the role worker; leasehold token add NAME --role worker "
                    "makes one that has it");
  }
  if (http_status == 401) {
    return complain(exit_code::forbidden,
                    "no token, or one that is not known; name its file with --token-file");
  }
  return complain(exit_code::forbidden,
                  "the coordinator does not let this principal serve these queues; leasehold token "
                  "list shows which it may");
}

exit_code running_worker::run() {
  const auto both = stop_signals();
  pthread_sigmask(SIG_BLOCK, &both, nullptr);
  child_process::adopt_orphans();
  plan_.options.on_job = [this](const client::job& job) { work(job); };
  plan_.options.on_event = [this](const worker_event& event) { hear(event); };
  if (plan_.options.chaos) speaker_.say("chaos", "", client::to_text(*plan_.options.chaos));
  client::worker worker(plan_.options);
  if (const auto fault = worker.start()) return complain(exit_code::malformed, *fault);
  wait_for_the_end(worker);
  const bool ended = worker.ended();
  const bool clean = stop(worker);
  if (ended) return refused_for_ever(http_status_);
  return clean ? exit_code::ok : exit_code::differs;
}

}  // namespace

void add_worker(CLI::App& app, command_line& line) {
  auto chosen = std::make_shared<worker_settings>();
  auto* command = app.add_subcommand("worker", "Take jobs and run a command for each");
  command->footer(std::string(footer));
  command->add_option("--queue", chosen->queues, "QUEUE or QUEUE:SLOTS; may be repeated")
      ->allow_extra_args(false)  // else it would take the "--" before the command for its end
      ->required();
  command->add_option("--slots", chosen->slots, "Jobs at once of a queue without :SLOTS")
      ->check(CLI::Range(std::int64_t{1}, client::most_slots))
      ->capture_default_str();
  command->add_option("--label", chosen->labels, "KEY=VALUE that this worker has; may be repeated")
      ->allow_extra_args(false);
  command
      ->add_option("--also-url", chosen->more_urls,
                   "Another address of the coordinator; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--chaos", chosen->chaos,
                      "Faults between this worker and its socket: reorder=P,dup=P,drop=P,"
                      "delay=MIN..MAXms,seed=N");
  command->add_option("--exit-when-idle", chosen->exit_when_idle,
                      "End after this long without a job");
  command->add_option("--grace", chosen->grace, "From TERM to KILL")->capture_default_str();
  command
      ->add_option("--drain-timeout", chosen->drain_timeout, "How long jobs may go on after TERM")
      ->capture_default_str();
  command->add_flag("--retry", chosen->retry, "Every failure may be tried again");
  command->add_flag("--wire-json", chosen->wire_json, "Speak JSON, to be read on the wire");
  add_command_words(*command, line, chosen->command);
  command->callback([chosen, &line] {
    auto plan = make_plan(*chosen, line);
    if (!plan.fault.empty()) {
      line.result = complain(exit_code::malformed, plan.fault);
      return;
    }
    line.result = running_worker(std::move(plan), line.json).run();
  });
}

}  // namespace leasehold::tools
