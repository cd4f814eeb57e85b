#include "slow_readers.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <boost/json.hpp>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "e2e/live_server.hpp"
#include "figures.hpp"
#include "load_poll.hpp"
#include "mute_reader.hpp"
#include "process_cost.hpp"
#include "renew_worker.hpp"
#include "tools/terminal.hpp"

namespace leasehold::bench {
namespace {

using std::chrono::milliseconds;

// What must hold.
constexpr double most_growth_bytes = 5e6;
constexpr double longest_close_s = 15;
constexpr double worst_ratio = 3;

constexpr double first_look_s = 10;     ///< at the memory
constexpr std::size_t leases_each = 5;  ///< of a worker that reads
constexpr int lease_ms = 5000;
constexpr milliseconds renew_pause{50};  ///< of one worker
constexpr std::size_t idle_jobs = 100;   ///< offered to those that do not read
/// A reader asks for 32 answers of about 170 bytes at a time: after some 60 times nobody keeps more
/// for it.
constexpr milliseconds ask_pause{320};
constexpr milliseconds count_pause{500};  ///< between two looks at the coordinator's count

struct worker_figures {
  std::int64_t asked = 0;
  std::int64_t renewed = 0;
  std::int64_t lost = 0;
  double p50_ms = 0;
  double p99_ms = 0;
  double max_ms = 0;
};

struct round_figures {
  worker_figures alone;
  worker_figures beside;
  double memory_first = 0;  ///< after 10 s with the readers, in bytes
  double memory_last = 0;
  double memory_most = 0;
  std::size_t closed = 0;    ///< readers whose socket has ended
  std::int64_t counted = 0;  ///< by the coordinator
  double closing_s = 0;      ///< the longest, from when one was counted until one more was closed
  double longest_s = 0;      ///< of a reader, from when nothing more came to it until it was closed
  double cpu_s = 0;          ///< of the coordinator, with the readers

  [[nodiscard]] double ratio() const { return beside.p99_ms / alone.p99_ms; }
};

std::string incarnation_of(char digit, std::size_t number) {
  auto text = std::to_string(number);
  return text.insert(0, 32 - text.size(), digit);
}

class slow_reader_round {
 public:
  explicit slow_reader_round(const slow_reader_options& how) : how_(how), server_(how.threads) {}

  round_figures run() {
    take_leases();
    round_figures out;
    out.alone = renew_for(how_.seconds, [](double) {});
    {
      connect_readers();
      const std::jthread asks([this](const std::stop_token& enough) {
        keep_asking(readers_, ask_pause, [&] {
          count_readers();
          return enough.stop_requested();
        });
      });
      const double cpu = cpu_seconds_of(server_.process());
      out.beside = renew_for(how_.seconds, [&](double s) { weigh(s, out); });
      out.cpu_s = cpu_seconds_of(server_.process()) - cpu;
    }
    out.memory_last = memory();
    look_at_readers(out);
    return out;
  }

 private:
  void take_leases() {
    const auto jobs = how_.workers * leases_each;
    for (std::size_t i = 0; i < jobs; ++i) {
      server_.submit("good" + std::to_string(i), {{"lease_duration_ms", lease_ms}});
    }
    for (std::size_t i = 0; i < idle_jobs; ++i) {
      server_.submit("idle" + std::to_string(i), {{"ack_timeout_ms", 1000}}, "idle");
    }
    for (std::size_t i = 0; i < how_.workers; ++i) {
      workers_.emplace_back(renew_worker::options{.port = server_.port(),
                                                  .token = server_.token("w1"),
                                                  .incarnation = incarnation_of('a', i),
                                                  .leases = leases_each});
    }
    while (!std::ranges::all_of(workers_, &renew_worker::holds_all)) turn();
  }

  void connect_readers() {
    tools::progress_bar bar("connecting", static_cast<std::int64_t>(how_.readers));
    readers_.reserve(how_.readers);
    while (readers_.size() < how_.readers) {
      readers_.emplace_back(
          mute_reader::options{.port = server_.port(),
                               .principal = "w2",
                               .token = server_.token("w2"),
                               .incarnation = incarnation_of('b', readers_.size()),
                               .queue = "idle"});
      bar.show(static_cast<std::int64_t>(readers_.size()));
      keep_leases();
    }
    bar.finish();
  }

  /// Renews what is due.
  void keep_leases() {
    for (auto now = steady::now(); due_ <= now; due_ += renew_pause / how_.workers) {
      workers_[next_worker_].renew_one();
      next_worker_ = (next_worker_ + 1) % workers_.size();
      ++asked_;
    }
    turn();
  }

  template <class Each>
  worker_figures renew_for(double seconds, Each each) {
    settle();
    collect();
    due_ = steady::now();
    const auto begun = steady::now();
    tools::progress_bar bar(readers_.empty() ? "renewing alone" : "renewing beside the readers",
                            static_cast<std::int64_t>(seconds));
    for (double s = 0; s < seconds; s = seconds_since(begun)) {
      keep_leases();
      each(s);
      bar.show(static_cast<std::int64_t>(s));
    }
    settle();
    bar.finish();
    return collect();
  }

  /// What was asked last has as long as a lease lives.
  void settle() {
    const auto last = steady::now();
    const auto answered = [](const renew_worker& w) { return w.answered(); };
    while (!std::ranges::all_of(workers_, answered) && seconds_since(last) < lease_ms / 1000.0) {
      turn();
    }
  }

  worker_figures collect() {
    worker_figures out;
    out.asked = std::exchange(asked_, 0);
    std::vector<std::uint32_t> latencies;
    for (auto& each : workers_) {
      const auto tally = each.take_tally();
      out.renewed += tally.accepted;
      out.lost += tally.refused + each.lost();
      latencies.insert(latencies.end(), tally.latencies_us.begin(), tally.latencies_us.end());
    }
    const latency_figures spread(std::move(latencies));
    out.p50_ms = spread.at(0.5);
    out.p99_ms = spread.at(0.99);
    out.max_ms = spread.at(1);
    return out;
  }

  void turn() {
    for (auto& each : workers_) each.turn();
    if (!poll_all(
            workers_, [](renew_worker& w) -> load_socket& { return w.socket(); }, 1)) {
      std::cerr << "leasehold_bench: every session has ended\n";
      std::exit(1);
    }
  }

  [[nodiscard]] double memory() const { return static_cast<double>(memory_of(server_.process())); }

  void weigh(double s, round_figures& out) const {
    if (s < next_look_s_) return;
    next_look_s_ = s + 0.25;
    const double now = memory();
    out.memory_most = std::max(out.memory_most, now);
    if (s < first_look_s) out.memory_first = now;
  }

  [[nodiscard]] std::int64_t counted() {
    return static_cast<std::int64_t>(metric(server_.metrics(), "leasehold_slow_readers_total"));
  }

  /// Keeps from when each may have fallen behind: the look before the one that found it counted.
  /// Nobody else asks the server meanwhile.
  void count_readers() {
    const auto now = steady::now();
    if (now < counted_at_ + count_pause) return;
    const auto since = std::exchange(counted_at_, now);
    fell_behind_.resize(static_cast<std::size_t>(counted()), since);
  }

  void look_at_readers(round_figures& out) {
    out.counted = counted();
    std::vector<steady::time_point> ends;
    for (const auto& each : readers_) {
      if (!each.ended()) continue;
      ends.push_back(*each.ended());
      out.longest_s = std::max(out.longest_s, each.took()->count());
    }
    out.closed = ends.size();
    std::ranges::sort(ends);
    for (std::size_t i = 0; i < std::min(ends.size(), fell_behind_.size()); ++i) {
      const std::chrono::duration<double> took = ends[i] - fell_behind_[i];
      out.closing_s = std::max(out.closing_s, took.count());
    }
  }

  slow_reader_options how_;
  e2e::live_server server_;
  std::vector<renew_worker> workers_;
  std::vector<mute_reader> readers_;
  steady::time_point due_ = steady::now();
  std::size_t next_worker_ = 0;
  std::int64_t asked_ = 0;
  mutable double next_look_s_ = 0;
  steady::time_point counted_at_ = steady::now();
  std::vector<steady::time_point> fell_behind_;  ///< in this order
};

/// What is wrong with it, a sentence each; the ratio aside, of which the best round counts.
std::vector<std::string> broken_bounds(const round_figures& round, std::size_t readers) {
  std::vector<std::string> out;
  if (round.memory_last > round.memory_first + most_growth_bytes) {
    out.emplace_back("memory grew by more than 5 MB between 10 s and the end");
  }
  if (round.closed < readers || round.counted != static_cast<std::int64_t>(readers)) {
    out.emplace_back("not every reader was closed with 4002");
  }
  if (round.closing_s > longest_close_s) {
    out.emplace_back("a reader was closed later than 15 s after it fell behind");
  }
  for (const auto& each : {round.alone, round.beside}) {
    if (each.renewed != each.asked) out.emplace_back("not every renew was answered");
    if (each.lost > 0) out.emplace_back("a renew was refused or a lease was lost");
  }
  return out;
}

void print_table(const std::vector<round_figures>& rounds) {
  tools::table rows({"round", "renews", "alone p50 ms", "p99", "beside p50 ms", "p99", "max",
                     "ratio", "MB at 10 s", "at the end", "most", "closed 4002", "within s",
                     "full for s", "CPU s"});
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    const auto& r = rounds[i];
    rows.add({std::to_string(i + 1), std::to_string(r.beside.renewed), number(r.alone.p50_ms, 2),
              number(r.alone.p99_ms, 2), number(r.beside.p50_ms, 2), number(r.beside.p99_ms, 2),
              number(r.beside.max_ms, 1), number(r.ratio(), 2), number(r.memory_first / 1e6, 1),
              number(r.memory_last / 1e6, 1), number(r.memory_most / 1e6, 1),
              std::to_string(r.counted), number(r.closing_s, 1), number(r.longest_s, 1),
              number(r.cpu_s, 1)});
  }
  std::cout << rows.text();
}

boost::json::object as_json(const worker_figures& of) {
  return {{"asked", of.asked},   {"renewed", of.renewed}, {"lost", of.lost},
          {"p50_ms", of.p50_ms}, {"p99_ms", of.p99_ms},   {"max_ms", of.max_ms}};
}

void print_json(const std::vector<round_figures>& rounds) {
  boost::json::array all;
  for (const auto& r : rounds) {
    all.push_back({{"alone", as_json(r.alone)},
                   {"beside", as_json(r.beside)},
                   {"p99_ratio", r.ratio()},
                   {"memory_10s_bytes", r.memory_first},
                   {"memory_end_bytes", r.memory_last},
                   {"memory_most_bytes", r.memory_most},
                   {"readers_closed", r.closed},
                   {"readers_counted", r.counted},
                   {"longest_close_s", r.closing_s},
                   {"longest_full_s", r.longest_s},
                   {"server_cpu_s", r.cpu_s}});
  }
  std::cout << boost::json::serialize(boost::json::object{{"rounds", std::move(all)}}) << '\n';
}

/// Each reader has a descriptor here and one in the coordinator, which inherits the limit.
bool raise_descriptors(std::size_t readers) {
  const rlim_t wanted = readers + 512;
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return false;
  if (files.rlim_cur >= wanted) return true;
  files.rlim_cur = std::min(wanted, files.rlim_max);
  return ::setrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur >= wanted;
}

}  // namespace

int measure_slow_readers(const slow_reader_options& how) {
  if (!raise_descriptors(how.readers)) {
    std::cerr << "leasehold_bench: the limit of open files is too low for " << how.readers
              << " readers; raise it (ulimit -n)\n";
    return 1;
  }
  std::vector<round_figures> rounds;
  rounds.reserve(static_cast<std::size_t>(how.rounds));
  for (int i = 0; i < how.rounds; ++i) {
    rounds.push_back(std::make_unique<slow_reader_round>(how)->run());
  }
  how.json ? print_json(rounds) : print_table(rounds);
  std::vector<std::string> broken;
  for (const auto& round : rounds) {
    for (auto& each : broken_bounds(round, how.readers)) broken.push_back(std::move(each));
  }
  if (std::ranges::min(rounds, {}, &round_figures::ratio).ratio() > worst_ratio) {
    broken.emplace_back("p99 beside the readers was more than 3 times that without them");
  }
  for (const auto& each : broken) std::cerr << "leasehold_bench: " << each << '\n';
  return broken.empty() ? 0 : 1;
}

}  // namespace leasehold::bench
