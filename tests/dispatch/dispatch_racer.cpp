// One of several dispatchers that race for the same cancels, with a barrier before each first
// claim.
//
//   dispatch_racer URL BOARD RACERS COUNT CLAIM_MS CALLER FILE WAIT_MS
//
// For each of COUNT jobs (j000, j001, ...) it sees the record, waits for the others, and claims;
// who got the claim runs CALLER FILE WAIT_MS JOB TOKEN CLAIMED_AT EXPIRES_AT. It goes on to the
// next job once the record may not be claimed any more, and ends with what it did in one line.
// CALLER "-": there is no controller.
#include <spawn.h>
#include <sys/wait.h>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <future>
#include <iostream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "dispatch_names.hpp"
#include "leasehold/actors/dispatch.hpp"
#include "race_board.hpp"
#include "src/auth.hpp"
#include "src/dispatcher_store.hpp"

extern char** environ;

namespace leasehold::tests {
namespace {

using protocol::dispatch_result;

/// Runs what is posted, on the thread that waits.
class waiting_strand {
 public:
  void post(std::function<void()> what) {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(what));
    changed_.notify_one();
  }
  void run_until(const bool& over) {
    while (!over) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return !waiting_.empty(); });
      const auto next = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      next();
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
};

/// Shows one record at a time, and waits for the others before its first claim.
class one_at_a_time final : public actors::dispatch_store {
 public:
  one_at_a_time(actors::dispatch_store& real, race_board& board, std::uint32_t racers)
      : real_(real), board_(board), racers_(racers) {}

  void show(int round) {
    round_ = round;
    met_ = false;
  }

  actors::store_result<protocol::instant> now() override { return real_.now(); }
  void page(actors::dispatch_query, then<actors::dispatch_page> done) override {
    real_.find(raced_key(round_), [done = std::move(done)](auto got) {
      if (auto* fault = std::get_if<actors::store_error>(&got)) return done(std::move(*fault));
      actors::dispatch_page page;
      auto& record = std::get<std::optional<protocol::dispatch_record>>(got);
      if (record) page.records.push_back(std::move(*record));
      done(std::move(page));
    });
  }
  void claim(std::vector<protocol::dispatch_claim> asked, protocol::dispatch_pace pace,
             then<std::vector<actors::dispatch_claimed>> done) override {
    if (!met_ && !board_.meet(static_cast<std::size_t>(round_), racers_)) std::exit(3);
    met_ = true;
    real_.claim(std::move(asked), pace, std::move(done));
  }
  void report(std::vector<protocol::dispatch_report> said, protocol::dispatch_pace pace,
              then<std::vector<actors::dispatch_reported>> done) override {
    real_.report(std::move(said), pace, std::move(done));
  }
  void operate(protocol::lease_key key, protocol::dispatch_operation what,
               then<actors::dispatch_reported> done) override {
    real_.operate(std::move(key), what, std::move(done));
  }
  void find(protocol::lease_key key, then<std::optional<protocol::dispatch_record>> done) override {
    real_.find(std::move(key), std::move(done));
  }
  void events(protocol::lease_key key, std::int64_t after, std::size_t limit,
              then<std::vector<protocol::dispatch_event>> done) override {
    real_.events(std::move(key), after, limit, std::move(done));
  }
  void exited(protocol::instant since, std::size_t limit,
              then<std::vector<protocol::dispatch_record>> done) override {
    real_.exited(since, limit, std::move(done));
  }
  void count(then<actors::dispatch_counts> done) override { real_.count(std::move(done)); }

 private:
  actors::dispatch_store& real_;
  race_board& board_;
  std::uint32_t racers_;
  int round_ = 0;
  bool met_ = false;
};

/// Runs a program for each claim.
class calling_controller final : public actors::execution_controller {
 public:
  calling_controller(std::string program, std::string file, std::string wait_ms, std::int64_t claim)
      : program_(std::move(program)),
        file_(std::move(file)),
        wait_ms_(std::move(wait_ms)),
        claim_ms_(claim) {}
  ~calling_controller() override {
    for (auto& each : running_) each.join();
  }

  void act(const actors::dispatch_claimed& claim,
           std::function<void(dispatch_result)> done) override {
    const auto& r = claim.record;
    std::vector<std::string> words{program_,
                                   file_,
                                   wait_ms_,
                                   r.key.lease.value,
                                   r.lease_token,
                                   std::to_string(r.lease_expires_at.ms - claim_ms_),
                                   std::to_string(r.lease_expires_at.ms)};
    running_.emplace_back([words = std::move(words), done = std::move(done)]() mutable {
      std::vector<char*> list;
      for (auto& each : words) list.push_back(each.data());
      list.push_back(nullptr);
      pid_t child = -1;
      int status = -1;
      const bool ran = posix_spawn(&child, list[0], nullptr, nullptr, list.data(), environ) == 0 &&
                       waitpid(child, &status, 0) == child && status == 0;
      done(ran ? dispatch_result::termination_requested : dispatch_result::dispatch_error);
    });
  }

 private:
  std::string program_;
  std::string file_;
  std::string wait_ms_;
  std::int64_t claim_ms_;
  std::vector<std::thread> running_;
};

struct race {
  std::string url, board, caller, file, wait_ms;
  std::uint32_t racers = 0;
  int count = 0;
  std::int64_t claim_ms = 0;
};

/// Whether it can still be claimed, now or later.
bool is_open(actors::dispatch_store& in, int round) {
  std::promise<bool> open;
  in.find(raced_key(round), [&](auto got) {
    const auto* found = std::get_if<std::optional<protocol::dispatch_record>>(&got);
    using enum protocol::dispatch_status;
    open.set_value(found != nullptr && *found && (*found)->status != dispatched &&
                   (*found)->status != blocked && (*found)->status != closed);
  });
  return open.get_future().get();
}

int run(const race& how) {
  const auto machine = server::machine_clocks();
  auto place = storage::parse_store_url(how.url);
  if (!std::holds_alternative<storage::store_place>(place)) return 2;
  auto opened = server::open_dispatches(std::get<storage::store_place>(place), machine);
  if (auto* fault = std::get_if<actors::store_error>(&opened)) {
    std::cerr << fault->sentence << '\n';
    return 1;
  }
  auto& real = *std::get<std::unique_ptr<actors::dispatch_store>>(opened);
  race_board board(how.board);
  auto shown = std::make_shared<one_at_a_time>(real, board, how.racers);
  waiting_strand strand;
  actors::dispatch_supervisor_options options;
  options.store = shown;
  if (how.caller != "-") {
    options.controllers[protocol::dispatch_stage::stream] =
        std::make_shared<calling_controller>(how.caller, how.file, how.wait_ms, how.claim_ms);
  }
  options.owner = "racer/" + std::to_string(getpid());
  options.make_token = [] { return server::random_hex(32); };
  options.strand = [&strand](std::function<void()> what) { strand.post(std::move(what)); };
  options.pace = {protocol::duration{how.claim_ms}, protocol::duration{20}, protocol::duration{80}};
  actors::dispatch_supervisor supervisor(std::move(options));
  std::int64_t cycles = 0, claimed = 0, reported = 0, errors = 0;
  for (int round = 0; round < how.count; ++round) {
    shown->show(round);
    do {
      bool over = false;
      supervisor.run_cycle([&](const actors::dispatch_cycle& did) {
        ++cycles;
        claimed += did.claimed;
        reported += did.reported;
        if (did.error) {
          ++errors;
          std::cerr << did.error->sentence << '\n';
        }
        over = true;
      });
      strand.run_until(over);
    } while (cycles < most_raced_cycles && is_open(real, round));
  }
  std::cout << "cycles " << cycles << " claimed " << claimed << " reported " << reported
            << " errors " << errors << std::endl;
  return 0;
}

}  // namespace
}  // namespace leasehold::tests

int main(int count, char** values) {
  if (count != 9) return 2;
  leasehold::tests::race how;
  how.url = values[1];
  how.board = values[2];
  how.racers = static_cast<std::uint32_t>(std::atoi(values[3]));
  how.count = std::atoi(values[4]);
  how.claim_ms = std::atoi(values[5]);
  how.caller = values[6];
  how.file = values[7];
  how.wait_ms = values[8];
  return leasehold::tests::run(how);
}
