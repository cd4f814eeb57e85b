#include "job_bench.hpp"

#include <algorithm>
#include <boost/json.hpp>
#include <iostream>
#include <string>

#include "e2e/live_server.hpp"
#include "figures.hpp"
#include "job_worker.hpp"
#include "load_poll.hpp"
#include "process_cost.hpp"
#include "submit_load.hpp"
#include "tools/terminal.hpp"

namespace leasehold::bench {
namespace {

struct job_figures {
  double rate = 0;          ///< lives ended a second
  double rate_per_cpu = 0;  ///< the same a second of server CPU
  double p50_ms = 0;        ///< from the offer to the answered result
  double p99_ms = 0;
  double rows_per_job = 0;
  double batches_per_job = 0;  ///< commits, each with its fsync
  std::int64_t refused = 0;
  protocol::reason refusal{};
};

class job_bench {
 public:
  explicit job_bench(const job_options& how)
      : how_(how),
        server_(how.threads, {"--stream-frames-per-second", "0", "--stream-bytes-per-second", "0B",
                              "--limits-leases-per-worker", "10000000",
                              "--limits-leases-per-tenant", "10000000"}),
        submitter_({.port = server_.port(),
                    .token = server_.token("client"),
                    .policy = R"({"lease_duration_ms":600000,"ack_timeout_ms":600000})",
                    .connections = how.submitters}) {
    for (std::size_t i = 0; i < how_.connections; ++i) {
      auto incarnation = std::to_string(i);
      incarnation.insert(0, 32 - incarnation.size(), 'c');
      workers_.emplace_back(job_worker::options{
          .port = server_.port(), .token = server_.token("w1"), .incarnation = incarnation});
    }
  }

  int run() {
    tools::progress_bar bar("living", static_cast<std::int64_t>(how_.warm_up_s + how_.seconds));
    live_for(how_.warm_up_s, [&](double s) { bar.show(static_cast<std::int64_t>(s)); });
    figures_ = {};
    latencies_.clear();
    const std::int64_t ended = ended_;
    const std::string before = server_.metrics();
    const auto begun = steady::now();
    const double cpu = cpu_seconds_of(server_.process());
    live_for(how_.seconds,
             [&](double s) { bar.show(static_cast<std::int64_t>(how_.warm_up_s + s)); });
    const double took = seconds_since(begun);
    const double server_cpu = cpu_seconds_of(server_.process()) - cpu;
    const std::string after = server_.metrics();
    bar.finish();
    const auto lives = static_cast<double>(ended_ - ended);
    const auto risen = [&](const char* name) { return metric(after, name) - metric(before, name); };
    figures_.rate = lives / took;
    figures_.rate_per_cpu = lives / server_cpu;
    figures_.rows_per_job = risen("leasehold_store_last_row") / lives;
    figures_.batches_per_job = risen("leasehold_store_commits_total") / lives;
    const latency_figures spread(std::move(latencies_));
    figures_.p50_ms = spread.at(0.5);
    figures_.p99_ms = spread.at(0.99);
    how_.json ? print_json() : print_table();
    if (figures_.refused == 0) return 0;
    std::cerr << "leasehold_bench: frames of its own were refused ("
              << protocol::word(figures_.refusal) << "); the figures do not count\n";
    return 1;
  }

 private:
  template <class Show>
  void live_for(double seconds, Show show) {
    const auto begun = steady::now();
    for (double s = 0; s < seconds; s = seconds_since(begun)) {
      if (!submitter_.turn(ended_ + how_.open_jobs, 0)) {
        std::cerr << "leasehold_bench: every connection has ended\n";
        std::exit(1);
      }
      for (auto& each : workers_) each.turn();
      poll_all(
          workers_, [](auto& each) -> load_socket& { return each.socket(); }, 1);
      for (auto& each : workers_) {
        auto tally = each.take_tally();
        ended_ += tally.ended;
        figures_.refused += tally.refused;
        if (tally.refused > 0) figures_.refusal = tally.refusal;
        latencies_.insert(latencies_.end(), tally.latencies_us.begin(), tally.latencies_us.end());
      }
      show(s);
    }
  }

  void print_table() const {
    tools::table out({"jobs/s", "per CPU s", "p50 ms", "p99 ms", "rows/job", "commits/job"});
    out.add({number(figures_.rate), number(figures_.rate_per_cpu), number(figures_.p50_ms, 2),
             number(figures_.p99_ms, 2), number(figures_.rows_per_job, 2),
             number(figures_.batches_per_job, 4)});
    std::cout << out.text();
  }

  void print_json() const {
    std::cout << boost::json::serialize(
                     boost::json::object{{"jobs_per_s", figures_.rate},
                                         {"jobs_per_cpu_s", figures_.rate_per_cpu},
                                         {"p50_ms", figures_.p50_ms},
                                         {"p99_ms", figures_.p99_ms},
                                         {"rows_per_job", figures_.rows_per_job},
                                         {"commits_per_job", figures_.batches_per_job},
                                         {"refused", figures_.refused}})
              << '\n';
  }

  job_options how_;
  e2e::live_server server_;
  job_submitter submitter_;
  std::vector<job_worker> workers_;
  std::vector<std::uint32_t> latencies_;
  std::int64_t ended_ = 0;
  job_figures figures_;
};

}  // namespace

int measure_jobs(const job_options& how) { return job_bench(how).run(); }

}  // namespace leasehold::bench
