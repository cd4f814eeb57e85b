#include "lock_bench.hpp"

#include <algorithm>
#include <boost/json.hpp>
#include <iostream>
#include <string>

#include "e2e/live_server.hpp"
#include "figures.hpp"
#include "load_poll.hpp"
#include "lock_worker.hpp"
#include "process_cost.hpp"
#include "tools/terminal.hpp"

namespace leasehold::bench {
namespace {

struct lock_figures {
  std::size_t batch = 0;
  double rate = 0;          ///< acquired and released a second
  double rate_per_cpu = 0;  ///< the same a second of server CPU
  double p50_ms = 0;        ///< of a message
  double p99_ms = 0;
  std::int64_t refused = 0;
  protocol::reason refusal{};  ///< of one of them
};

class lock_bench {
 public:
  explicit lock_bench(const lock_options& how)
      : how_(how),
        server_(how.threads,
                {"--stream-frames-per-second", "0", "--stream-bytes-per-second", "0B"}) {}

  int run() {
    for (const auto batch : how_.batches) measure(batch);
    how_.json ? print_json() : print_table();
    const auto bad = std::ranges::find_if(figures_, [](const auto& f) { return f.refused > 0; });
    if (bad == figures_.end()) return 0;
    std::cerr << "leasehold_bench: locks of its own were refused (" << protocol::word(bad->refusal)
              << "); the figures do not count\n";
    return 1;
  }

 private:
  void measure(std::size_t batch) {
    workers_.clear();
    for (std::size_t i = 0; i < how_.connections; ++i) {
      auto incarnation = std::to_string(i);
      incarnation.insert(0, 32 - incarnation.size(), 'b');
      workers_.emplace_back(lock_worker::options{.port = server_.port(),
                                                 .token = server_.token("w1"),
                                                 .incarnation = incarnation,
                                                 .batch = batch});
    }
    tools::progress_bar bar("locking by " + std::to_string(batch),
                            static_cast<std::int64_t>(how_.warm_up_s + how_.seconds));
    turn_for(workers_, how_.warm_up_s, [&](double s) { bar.show(static_cast<std::int64_t>(s)); });
    for (auto& each : workers_) each.take_tally();
    const auto begun = steady::now();
    const double cpu = cpu_seconds_of(server_.process());
    turn_for(workers_, how_.seconds,
             [&](double s) { bar.show(static_cast<std::int64_t>(how_.warm_up_s + s)); });
    const double took = seconds_since(begun);
    const double server_cpu = cpu_seconds_of(server_.process()) - cpu;
    bar.finish();
    lock_figures out;
    out.batch = batch;
    std::int64_t pairs = 0;
    std::vector<std::uint32_t> latencies;
    for (auto& each : workers_) {
      auto tally = each.take_tally();
      pairs += tally.pairs;
      out.refused += tally.refused;
      if (tally.refused > 0) out.refusal = tally.refusal;
      latencies.insert(latencies.end(), tally.latencies_us.begin(), tally.latencies_us.end());
      each.go_on(false);
    }
    const latency_figures spread(std::move(latencies));
    out.rate = static_cast<double>(pairs) / took;
    out.rate_per_cpu = static_cast<double>(pairs) / server_cpu;
    out.p50_ms = spread.at(0.5);
    out.p99_ms = spread.at(0.99);
    figures_.push_back(out);
    while (!std::ranges::all_of(workers_, [](const auto& w) { return w.idle(); }))
      turn_all(workers_);
  }

  void print_table() const {
    tools::table rates({"batch", "locks/s", "per CPU s", "p50 ms", "p99 ms", "refused"});
    for (const auto& each : figures_) {
      rates.add({std::to_string(each.batch), number(each.rate), number(each.rate_per_cpu),
                 number(each.p50_ms, 2), number(each.p99_ms, 2), std::to_string(each.refused)});
    }
    std::cout << rates.text();
  }

  void print_json() const {
    boost::json::array locks;
    for (const auto& each : figures_) {
      locks.push_back({{"batch", each.batch},
                       {"locks_per_s", each.rate},
                       {"locks_per_cpu_s", each.rate_per_cpu},
                       {"p50_ms", each.p50_ms},
                       {"p99_ms", each.p99_ms},
                       {"refused", each.refused}});
    }
    std::cout << boost::json::serialize(boost::json::object{{"locks", std::move(locks)}}) << '\n';
  }

  lock_options how_;
  e2e::live_server server_;
  std::vector<lock_worker> workers_;
  std::vector<lock_figures> figures_;
};

}  // namespace

int measure_locks(const lock_options& how) { return lock_bench(how).run(); }

}  // namespace leasehold::bench
