// leasehold_bench: measures the real programs of this build on this machine.
#include <CLI/CLI.hpp>

#include "dispatch_bench.hpp"
#include "lock_bench.hpp"
#include "renew_bench.hpp"
#include "slow_readers.hpp"

using namespace leasehold::bench;

int main(int argc, char** argv) {
  CLI::App app{"Measures the coordinator on this machine", "leasehold_bench"};
  renew_options renews;
  auto* renew = app.add_subcommand("renew", "Durable renews: rate, CPU, memory, recovery");
  renew->add_option("--leases", renews.leases, "Live leases")->capture_default_str();
  renew->add_option("--connections", renews.connections, "Sessions")->capture_default_str();
  renew->add_option("--batch", renews.batches, "Frames a message, several times")
      ->capture_default_str();
  renew->add_option("--warm-up", renews.warm_up_s, "Seconds before it is measured")
      ->capture_default_str();
  renew->add_option("--seconds", renews.seconds, "Seconds that are measured")
      ->capture_default_str();
  renew->add_option("--threads", renews.threads, "Threads of the coordinator")
      ->capture_default_str();
  renew->add_flag("--json", renews.json, "Print JSON");

  slow_reader_options slow;
  auto* readers = app.add_subcommand(
      "slow-readers", "Workers that do not read: memory, their ends, the others' latency");
  readers->add_option("--readers", slow.readers, "Workers that do not read")
      ->check(CLI::Range(1, 15'000))
      ->capture_default_str();
  readers->add_option("--workers", slow.workers, "Workers that renew meanwhile")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  readers->add_option("--seconds", slow.seconds, "Seconds without the readers, and with them")
      ->check(CLI::Range(11.0, 3600.0))
      ->capture_default_str();
  readers->add_option("--rounds", slow.rounds, "The best ratio of them counts")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  readers->add_option("--threads", slow.threads, "Threads of the coordinator")
      ->capture_default_str();
  readers->add_flag("--json", slow.json, "Print JSON");

  lock_options locking;
  auto* locks = app.add_subcommand("locks", "Locks acquired and released: rate, CPU");
  locks->add_option("--connections", locking.connections, "Sessions")->capture_default_str();
  locks->add_option("--batch", locking.batches, "Locks a message, several times")
      ->capture_default_str();
  locks->add_option("--warm-up", locking.warm_up_s, "Seconds before it is measured")
      ->capture_default_str();
  locks->add_option("--seconds", locking.seconds, "Seconds that are measured")
      ->capture_default_str();
  locks->add_option("--threads", locking.threads, "Threads of the coordinator")
      ->capture_default_str();
  locks->add_flag("--json", locking.json, "Print JSON");

  dispatch_options dispatching;
  auto* dispatches =
      app.add_subcommand("dispatch", "Claims of cancels beside a store under full load: latency");
  dispatches->add_option("--store", dispatching.store,
                         "URL of an empty PostgreSQL database; without it SQLite");
  dispatches->add_option("--batch", dispatching.batch, "Rows of a commit")->capture_default_str();
  dispatches->add_option("--claims", dispatching.claims, "Claims that are measured")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  dispatches->add_option("--most-p99-ms", dispatching.most_p99_ms, "Fails above it")
      ->capture_default_str();
  dispatches->add_flag("--json", dispatching.json, "Print JSON");

  app.require_subcommand(1);
  CLI11_PARSE(app, argc, argv);
  if (*renew) return measure_renews(renews);
  if (*dispatches) return measure_dispatches(dispatching);
  return *locks ? measure_locks(locking) : measure_slow_readers(slow);
}
