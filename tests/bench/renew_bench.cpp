#include "renew_bench.hpp"

#include <algorithm>
#include <boost/json.hpp>
#include <ctime>
#include <iostream>
#include <vector>

#include "e2e/live_server.hpp"
#include "figures.hpp"
#include "load_poll.hpp"
#include "process_cost.hpp"
#include "renew_worker.hpp"
#include "submit_load.hpp"
#include "tools/terminal.hpp"

namespace leasehold::bench {
namespace {

/// One row of the table.
struct renew_figures {
  std::size_t batch = 0;
  double rate = 0;          ///< accepted renews a second
  double rate_per_cpu = 0;  ///< the same a second of server CPU
  double cpu_us = 0;        ///< server CPU of one
  double client_share = 0;  ///< the load's CPU as a part of the server's
  double p50_ms = 0;
  double p99_ms = 0;
  double max_ms = 0;
  std::int64_t refused = 0;
  double behind_s = 0;  ///< rows that the checkpoint does not have, in seconds of load
  std::int64_t batches_stored = 0;
};

double own_cpu() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

class renew_bench {
 public:
  explicit renew_bench(const renew_options& how)
      : how_(how),
        server_(how.threads, {"--stream-frames-per-second", "0", "--stream-bytes-per-second", "0B",
                              "--limits-leases-per-worker", "10000000",
                              "--limits-leases-per-tenant", "10000000"}) {}

  int run() {
    submit();
    take_leases();
    for (const auto batch : how_.batches) measure(batch);
    recover();
    how_.json ? print_json() : print_table();
    return 0;
  }

 private:
  void submit() {
    empty_ = memory_of(server_.process());
    tools::progress_bar bar("submitting", how_.leases);
    const auto begun = steady::now();
    submitted_ = submit_jobs({.port = server_.port(),
                              .token = server_.token("client"),
                              .policy = R"({"lease_duration_ms":3600000,"ack_timeout_ms":600000})",
                              .jobs = how_.leases},
                             [&](std::int64_t count) { bar.show(count); });
    submit_rate_ = static_cast<double>(submitted_) / seconds_since(begun);
    bar.finish();
    resting_ = per_lease(memory_of(server_.process()));
  }

  void take_leases() {
    tools::progress_bar bar("leasing", how_.leases);
    const auto begun = steady::now();
    const auto share = submitted_ / static_cast<std::int64_t>(how_.connections);
    for (std::size_t i = 0; i < how_.connections; ++i) {
      auto incarnation = std::to_string(i);
      incarnation.insert(0, 32 - incarnation.size(), 'a');
      workers_.emplace_back(renew_worker::options{.port = server_.port(),
                                                  .token = server_.token("w1"),
                                                  .incarnation = incarnation,
                                                  .leases = share});
    }
    for (;;) {
      std::size_t held = 0;
      for (const auto& each : workers_) held += each.held();
      bar.show(static_cast<std::int64_t>(held));
      if (std::ranges::all_of(workers_, &renew_worker::holds_all)) break;
      turn_all(workers_);
    }
    bar.finish();
    lease_rate_ = static_cast<double>(submitted_) / seconds_since(begun);
    live_ = per_lease(memory_of(server_.process()));
  }

  void measure(std::size_t batch) {
    // Two messages of a batch: one is on its way while the other is decided.
    const std::size_t messages = batch == 1 ? how_.frames_in_flight : 2;
    for (auto& each : workers_) each.renew(batch, messages);
    tools::progress_bar bar("renewing by " + std::to_string(batch),
                            static_cast<std::int64_t>(how_.warm_up_s + how_.seconds));
    turn_for(workers_, how_.warm_up_s, [&](double s) { bar.show(static_cast<std::int64_t>(s)); });
    for (auto& each : workers_) each.take_tally();

    const auto begun = steady::now();
    const double cpu = cpu_seconds_of(server_.process());
    const double client = own_cpu();
    turn_for(workers_, how_.seconds,
             [&](double s) { bar.show(static_cast<std::int64_t>(how_.warm_up_s + s)); });
    const double took = seconds_since(begun);
    const double server_cpu = cpu_seconds_of(server_.process()) - cpu;
    const double client_cpu = own_cpu() - client;
    // The load goes on while the metrics are asked for by a connection of their own.
    const auto text = server_.metrics();
    bar.finish();

    renew_figures out;
    out.batch = batch;
    std::vector<std::uint32_t> latencies;
    std::int64_t accepted = 0;
    for (auto& each : workers_) {
      auto tally = each.take_tally();
      accepted += tally.accepted;
      out.refused += tally.refused;
      latencies.insert(latencies.end(), tally.latencies_us.begin(), tally.latencies_us.end());
    }
    const latency_figures spread(std::move(latencies));
    out.rate = static_cast<double>(accepted) / took;
    out.rate_per_cpu = static_cast<double>(accepted) / server_cpu;
    out.cpu_us = 1e6 / out.rate_per_cpu;
    out.client_share = client_cpu / server_cpu;
    out.p50_ms = spread.at(0.5);
    out.p99_ms = spread.at(0.99);
    out.max_ms = spread.at(1);
    out.behind_s = (metric(text, "leasehold_store_last_row") -
                    metric(text, "leasehold_store_checkpoint_row")) /
                   out.rate;
    figures_.push_back(out);
    for (auto& each : workers_) each.renew(batch, 0);
    while (!std::ranges::all_of(workers_, [](const auto& w) { return w.answered(); }))
      turn_all(workers_);
  }

  void recover() {
    server_.kill();
    const auto begun = steady::now();
    server_.start();
    ready_again_s_ = seconds_since(begun);
  }

  [[nodiscard]] double per_lease(std::int64_t memory) const {
    return static_cast<double>(memory - empty_) / static_cast<double>(how_.leases);
  }

  void print_table() const {
    tools::table rates({"batch", "renews/s", "per CPU s", "CPU us", "p50 ms", "p99 ms", "max ms",
                        "refused", "behind s", "load/server CPU"});
    for (const auto& each : figures_) {
      rates.add({std::to_string(each.batch), number(each.rate), number(each.rate_per_cpu),
                 number(each.cpu_us, 2), number(each.p50_ms, 2), number(each.p99_ms, 2),
                 number(each.max_ms, 1), std::to_string(each.refused), number(each.behind_s, 2),
                 number(each.client_share, 2)});
    }
    tools::table rest({"leases", "resting B", "live B", "submits/s", "leased/s", "ready again s"});
    rest.add({std::to_string(submitted_), number(resting_), number(live_), number(submit_rate_),
              number(lease_rate_), number(ready_again_s_, 2)});
    std::cout << rates.text() << '\n' << rest.text();
  }

  void print_json() const {
    boost::json::array renews;
    for (const auto& each : figures_) {
      renews.push_back({{"batch", each.batch},
                        {"renews_per_s", each.rate},
                        {"renews_per_cpu_s", each.rate_per_cpu},
                        {"cpu_us", each.cpu_us},
                        {"p50_ms", each.p50_ms},
                        {"p99_ms", each.p99_ms},
                        {"max_ms", each.max_ms},
                        {"refused", each.refused},
                        {"behind_s", each.behind_s},
                        {"load_cpu_share", each.client_share}});
    }
    std::cout << boost::json::serialize(boost::json::object{{"renews", std::move(renews)},
                                                            {"leases", submitted_},
                                                            {"resting_bytes", resting_},
                                                            {"live_bytes", live_},
                                                            {"submits_per_s", submit_rate_},
                                                            {"leased_per_s", lease_rate_},
                                                            {"ready_again_s", ready_again_s_}})
              << '\n';
  }

  renew_options how_;
  e2e::live_server server_;
  std::vector<renew_worker> workers_;
  std::vector<renew_figures> figures_;
  std::int64_t empty_ = 0;
  std::int64_t submitted_ = 0;
  double resting_ = 0;
  double live_ = 0;
  double submit_rate_ = 0;
  double lease_rate_ = 0;
  double ready_again_s_ = 0;
};

}  // namespace

int measure_renews(const renew_options& how) { return renew_bench(how).run(); }

}  // namespace leasehold::bench
