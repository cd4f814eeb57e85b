#include "crash_run.hpp"

#include <algorithm>
#include <cstdlib>
#include <future>
#include <map>
#include <memory>
#include <random>
#include <thread>
#include <utility>

#include "crash_machine.hpp"
#include "src/store/sqlite_backup.hpp"
#include "src/store/sqlite_store.hpp"
#include "support/driver.hpp"
#include "support/recording_store.hpp"
#include "support/temporary_directory.hpp"
#include "support/threaded_rig.hpp"

namespace leasehold::tests {

namespace {

using namespace std::chrono_literals;

/// Verdicts on each side of a backup.
constexpr std::size_t enough_answers = 1'500;

/// Jobs whose leases end soon when nobody speaks for them, so that they are granted again.
protocol::policy short_policy() {
  protocol::policy p;
  p.ack_timeout = {100};
  p.lease_duration = {300};
  p.recovery_grace = {50};
  p.reconcile_window = {200};
  p.cancel_grace = {100};
  return p;
}

/// A session on one of the coordinator's threads.
class rig_session final : public actors::outbound,
                          public std::enable_shared_from_this<rig_session> {
 public:
  rig_session(threaded_rig& rig, const crash_machine& machine, std::size_t thread, std::string name,
              driven_session::options how, driver_log& log)
      : rig_(rig),
        machine_(machine),
        thread_(thread),
        name_(std::move(name)),
        session_(std::move(how), log, [&rig] { return rig.clock->now(); }) {}

  void start() {
    rig_.loops[thread_]->post([self = shared_from_this()] {
      actors::principal who;
      who.name = self->name_;
      who.tenant = protocol::tenant_id{"t"};
      who.queues = {"*"};
      self->epoch_ = self->gateway().open_session(who, self);
      self->deliver(self->session_.hello());
    });
  }

  void send(std::span<const protocol::coordinator_frame> frames) override {
    // Nobody hears what is said after the power has gone.
    if (machine_.crashed()) return;
    session_.hear(frames);
    while (auto next = session_.next_message()) deliver(std::move(*next));
  }
  void close(protocol::close_code, std::string_view) override {}
  void pause_reading(bool) override {}

 private:
  actors::gateway& gateway() { return rig_.coordinator->on(thread_); }
  void deliver(driven_session::message frames) {
    gateway().deliver(epoch_, {std::move(frames), {}, {}}, rig_.clock->now());
  }

  threaded_rig& rig_;
  const crash_machine& machine_;
  std::size_t thread_;
  std::string name_;
  driven_session session_;
  actors::session_id epoch_ = 0;
};

/// Submits one job after another from one thread, and cancels some.
class submitter {
 public:
  /// `names`: after so many jobs the first name comes again, for the same work; 0: never.
  submitter(threaded_rig& rig, const crash_machine& machine, std::size_t thread, std::string prefix,
            driver_log& log, int names = 0)
      : rig_(rig),
        machine_(machine),
        thread_(thread),
        prefix_(std::move(prefix)),
        log_(log),
        names_(names) {}

  void start(int at_once) {
    for (int i = 0; i < at_once; ++i) rig_.loops[thread_]->post([this] { submit(); });
  }

 private:
  void submit() {
    if (machine_.crashed()) return;
    count_ = names_ != 0 && count_ == names_ ? 1 : count_ + 1;
    const auto job = prefix_ + std::to_string(count_);
    actors::job_spec spec;
    spec.queue = "q";
    spec.payload = "work of " + job + std::string(static_cast<std::size_t>(count_ % 7) * 400, '.');
    spec.policy = short_policy();
    log_.keep_submit(job, spec.payload);
    rig_.coordinator->on(thread_).submit(
        {protocol::tenant_id{"t"}, protocol::job_id{job}, std::move(spec)},
        [this, job](const actors::answer& said) {
          keep(protocol::event_kind::submit, job, said);
          if (count_ % 9 == 0) cancel(job);
          submit();
        });
  }
  void cancel(const std::string& job) {
    protocol::event what;
    what.kind = protocol::event_kind::cancel;
    what.lease = protocol::lease_id{job};
    rig_.coordinator->on(thread_).operate(
        {protocol::tenant_id{"t"}, what.lease}, what,
        [this, job](const actors::answer& said) { keep(protocol::event_kind::cancel, job, said); });
  }
  void keep(protocol::event_kind kind, const std::string& job, const actors::answer& said) {
    if (machine_.crashed()) return;
    log_.keep(
        kept_answer{kind, job, said.lease ? said.lease->row.value : 0, said.decision, said.reason});
  }

  threaded_rig& rig_;
  const crash_machine& machine_;
  std::size_t thread_;
  std::string prefix_;
  driver_log& log_;
  int names_;
  int count_ = 0;
};

/// A store over all its lives.
struct kept_store {
  std::unique_ptr<log_place> place;
  driver_log seen;
  expected_log expected;
  [[nodiscard]] std::filesystem::path directory() const { return place->directory(); }
};

class crashing {
 public:
  crashing(crash_machine& machine, const crash_options& how) : machine_(machine), how_(how) {}

  crash_report run() {
    for (int i = 0; i < how_.crashes; ++i) {
      if (i % how_.lives_of_a_store == 0) store_ = new_store();
      live(i);
      report_.lost_changes += machine_.unsynced();
      machine_.restart(random_());
      const bool last_life = (i + 1) % how_.lives_of_a_store == 0 || i + 1 == how_.crashes;
      if (last_life) end_store(i);
    }
    return report_;
  }

  restore_report restore() {
    restore_report out;
    store_ = new_store();
    const temporary_directory beside;
    const auto backup = beside.path() / "backup";
    serve(0, [&](threaded_rig& rig) { load_and_back_up(rig, backup); });
    machine_.restart(how_.seed);
    const auto before = std::move(store_);
    begin_from(backup, *before);
    restored_ = true;
    serve(1, [](threaded_rig&) {});
    restored_ = false;
    // Nothing was granted: who was granted something before the loss has no authority any more.
    if (store_->seen.heard() > 0) lost(1, {"somebody was heard before the hold was over"});
    let_a_minute_pass();
    serve(2, [&](threaded_rig& rig) {
      load(rig, 0, [&] {
        await_answers(enough_answers);
        machine_.crash();
      });
    });
    machine_.restart(how_.seed);
    serve(3, [](threaded_rig&) {});
    compare_offers(before->seen, out);
    out.backup_rows = backup_rows_;
    out.lost_rows = static_cast<std::int64_t>(before->place->read().rows.size()) - backup_rows_;
    store_.reset();
    out.faults = report_.losses;
    return out;
  }

 private:
  std::unique_ptr<kept_store> new_store() {
    auto out = std::make_unique<kept_store>();
    out->place = machine_.new_place();
    return out;
  }

  void compare_offers(const driver_log& before, restore_report& out) {
    const auto highest = highest_offers(before);
    out.offers_before = static_cast<std::int64_t>(highest.size());
    for (const auto& each : store_->seen.standings()) {
      if (each.offered_to.empty()) continue;
      ++out.offers_after;
      const auto found = highest.find(each.lease);
      if (found != highest.end() && each.gen <= found->second) {
        lost(3, {"generation " + std::to_string(each.gen) + " of " + each.lease +
                 " was given before the restore"});
      }
    }
  }

  /// From a start to the next crash.
  void live(int life) {
    random_.seed(how_.seed * 1'000'003 + static_cast<std::uint64_t>(life));
    const bool in_the_start = random_() % 4 == 0;
    const auto most = static_cast<std::int64_t>(in_the_start        ? 40
                                                : how_.short_memory ? 3'000
                                                                    : 900);
    const auto call = 1 + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(most));
    if (in_the_start) machine_.crash_at(call);
    serve(life, [&](threaded_rig& rig) {
      if (!in_the_start) machine_.crash_at(call);
      load(rig, life);
    });
    machine_.crash();
    ++report_.crashes;
  }

  /// So much is answered under load, and the backup taken in the middle of it.
  void load_and_back_up(threaded_rig& rig, const std::filesystem::path& to) {
    load(rig, 0, [&] {
      await_answers(enough_answers);
      const auto made = storage::backup_store({.from = store_->directory(), .to = to});
      if (const auto* fault = std::get_if<actors::store_error>(&made)) lost(0, {fault->sentence});
      await_answers(enough_answers);
      machine_.crash();
    });
  }

  void await_answers(std::size_t more) {
    const auto wanted = store_->seen.heard() + more;
    for (int i = 0; i < 2'000 && store_->seen.heard() < wanted; ++i) {
      std::this_thread::sleep_for(5ms);
    }
    if (store_->seen.heard() < wanted) lost(0, {"the load is not answered"});
  }

  /// The store begins anew with a copy of another one's log.
  void begin_from(const std::filesystem::path& backup, kept_store& other) {
    store_ = new_store();
    std::filesystem::rename(backup, store_->directory());
    const auto head = storage::head_of_directory(store_->directory());
    if (const auto* last = std::get_if<actors::log_head>(&head)) {
      store_->expected.begin_as(other.expected, last->last_row);
      backup_rows_ = last->last_row.value;
    }
    const auto without = storage::open_sqlite_store({.directory = store_->directory()});
    const auto* refused = std::get_if<actors::store_error>(&without);
    if (refused == nullptr || refused->sentence.find("--restored-backup") == std::string::npos) {
      lost(0, {"a backup is served without a word"});
    }
  }

  /// The coordinator's clock as it is a minute later.
  void let_a_minute_pass() {
    const auto sources = server::machine_clocks();
    const actors::clock_anchor before{sources.boot_id, sources.boottime_ms() - 60'000,
                                      sources.wall_ms() - 60'000, clock_->now()};
    clock_ = std::get<std::shared_ptr<server::system_clock>>(
        server::system_clock::start(sources, before, {86'400'000}));
  }

  static std::map<std::string, std::int64_t> highest_offers(const driver_log& seen) {
    std::map<std::string, std::int64_t> highest;
    for (const auto& each : seen.standings()) {
      if (each.offered_to.empty()) continue;
      auto& of_lease = highest[each.lease];
      of_lease = std::max(of_lease, each.gen);
    }
    return highest;
  }

  /// Nothing is armed here: what is left must serve, and be whole.
  void end_store(int life) {
    bool served = false;
    serve(life, [&](threaded_rig&) { served = true; });
    if (!served) lost(life, {"the store does not serve any more"});
    for (const auto& each : store_->seen.standings()) report_.offers += !each.offered_to.empty();
    report_.verdicts += static_cast<std::int64_t>(store_->seen.verdicts().size());
    store_.reset();
    machine_.crash();
    machine_.restart(0);
  }

  template <class Then>
  void serve(int life, Then then) {
    auto opened = store_->place->open({.restored_backup = restored_});
    if (const auto* fault = std::get_if<actors::store_error>(&opened)) {
      return failed_to_start(life, *fault);
    }
    std::vector<std::string> faults;
    auto where = std::make_shared<recording_store>(
        std::move(std::get<std::unique_ptr<actors::store>>(opened)), store_->expected, faults,
        [this] { return !machine_.crashed(); });
    threaded_rig::options chosen;
    chosen.threads = how_.threads;
    chosen.clock = clock_;
    chosen.restored_backup = restored_;
    chosen.actors.checkpoint_interval = {!how_.checkpoints || life % 3 != 0 ? 60'000 : 30};
    if (how_.short_memory && life % 3 != 2) forget_soon(chosen.actors);
    chosen.on_fatal = [this, life](std::string_view why) {
      if (!machine_.crashed()) lost(life, {"without a crash: " + std::string(why)});
    };
    threaded_rig rig(std::move(where), std::move(chosen));
    if (rig.start_error) return failed_to_start(life, *rig.start_error);
    lost(life, faults);
    look(life);
    then(rig);
  }

  /// What is settled is forgotten, and what is old is cut, while the load runs.
  static void forget_soon(actors::actor_options& options) {
    options.checkpoint_interval = {20};
    options.retention = {150};
    options.forget_after = {60};
    options.retention_check = {25};
  }

  void failed_to_start(int life, const actors::store_error& fault) {
    ++report_.crashes_at_start;
    if (!machine_.crashed()) lost(life, {"it does not start: " + fault.sentence});
  }

  /// Looks for everything that was told. A crash meanwhile leaves it to the next life.
  void look(int life) {
    const auto log = store_->place->read();
    auto losses = loss_search(log, store_->seen).run();
    for (auto& each : store_->expected.compare(log.rows, log.cut)) {
      losses.push_back(std::move(each));
    }
    const auto verified = store_->place->verify();
    if (machine_.crashed()) return;
    lost(life, losses);
    report_.rows += static_cast<std::int64_t>(log.rows.size());
    report_.cut_rows = std::max(report_.cut_rows, log.cut);
    report_.forgotten += std::ranges::count_if(log.rows, [](const protocol::stored_row& row) {
      return row.input.kind == protocol::event_kind::forget;
    });
    if (const auto* fault = std::get_if<actors::store_error>(&verified)) {
      lost(life, {"verify: " + fault->sentence});
      return;
    }
    for (const auto& each : std::get<storage::verify_report>(verified).problems) {
      lost(life, {"verify: row " + std::to_string(each.row.value) + ": " + each.sentence});
    }
  }

  /// Until the power goes.
  void load(threaded_rig& rig, int life) {
    load(rig, life, [this] {
      if (!machine_.wait_for_crash(10s)) machine_.crash();
    });
  }

  template <class Until>
  void load(threaded_rig& rig, int life, Until until) {
    std::vector<std::shared_ptr<rig_session>> sessions;
    for (std::size_t i = 0; i < how_.sessions; ++i) {
      // Half of the workers outlive the coordinator and come back.
      const auto process = i % 2 == 0 ? std::size_t{0} : static_cast<std::size_t>(life + 1);
      auto incarnation = std::to_string(1'000'000 + process);
      incarnation.insert(0, 32 - incarnation.size(), 'a');
      const std::size_t batch = i % 4 < 2 ? 1 : 64;
      sessions.push_back(std::make_shared<rig_session>(
          rig, machine_, i % how_.threads, "w" + std::to_string(i),
          driven_session::options{std::move(incarnation), batch, batch == 1 ? 4 : 24, random_()},
          store_->seen));
      sessions.back()->start();
    }
    std::vector<std::unique_ptr<submitter>> submitters;
    for (std::size_t i = 0; i < how_.threads; ++i) {
      const auto of_life = how_.short_memory ? std::string() : std::to_string(life) + "-";
      submitters.push_back(std::make_unique<submitter>(rig, machine_, i,
                                                       "j" + of_life + std::to_string(i) + "-",
                                                       store_->seen, how_.short_memory ? 100 : 0));
      submitters.back()->start(24);
    }
    std::jthread copying;
    if (life % 2 == 1) copying = machine_.beside(*store_->place);
    until();
    // The loops still run what was posted; the submitters must outlive that.
    rig.stop();
  }

  void lost(int life, const std::vector<std::string>& what) {
    const std::lock_guard lock(mutex_);
    for (const auto& each : what) {
      report_.losses.push_back("after crash " + std::to_string(life) + ": " + each);
    }
  }

  crash_machine& machine_;
  crash_options how_;
  std::mt19937_64 random_;
  std::shared_ptr<server::system_clock> clock_ = machine_clock();
  bool restored_ = false;
  std::int64_t backup_rows_ = 0;
  std::unique_ptr<kept_store> store_;
  std::mutex mutex_;
  crash_report report_;
};

}  // namespace

restore_report run_restore(crash_machine& machine, const crash_options& how) {
  return crashing(machine, how).restore();
}

crash_report run_crashes(crash_machine& machine, const crash_options& how) {
  return crashing(machine, how).run();
}

std::uint64_t seed_wanted() {
  const char* wanted = std::getenv("LEASEHOLD_CRASH_SEED");
  return wanted == nullptr ? 1 : std::strtoull(wanted, nullptr, 10);
}

std::string first_of(const std::vector<std::string>& losses) {
  std::string text = std::to_string(losses.size()) + " losses";
  for (std::size_t i = 0; i < losses.size() && i < 10; ++i) text += "\n  " + losses[i];
  return text;
}

int crashes_wanted(int otherwise) {
  const char* wanted = std::getenv("LEASEHOLD_CRASHES");
  return wanted == nullptr ? otherwise : static_cast<int>(std::strtol(wanted, nullptr, 10));
}

}  // namespace leasehold::tests
