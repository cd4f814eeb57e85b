// A coordinator on one thread of the test, on a clock that the test moves: everything runs inside
// settle(), in the order of the mailboxes, and nothing happens by itself.
#pragma once

#include <boost/asio/io_context.hpp>
#include <caf/actor_system.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "leasehold/actors/coordinator.hpp"
#include "src/asio_scheduler.hpp"
#include "support/memory_store.hpp"

namespace leasehold::tests {

/// Moves when the test says so.
class manual_clock final : public actors::clock {
 public:
  [[nodiscard]] protocol::instant now() const override { return now_; }
  [[nodiscard]] actors::clock_anchor anchor() const override {
    return {"boot", now_.ms, now_.ms, now_};
  }
  void set(protocol::instant to) { now_ = to; }

 private:
  protocol::instant now_{1'000'000};
};

/// Counts how often it is armed; fires when the test lets time pass.
class manual_timer final : public actors::timer {
 public:
  void arm(protocol::instant at, std::function<void()> due) override {
    at_ = at;
    due_ = std::move(due);
    ++arms;
  }
  void disarm() override { due_ = nullptr; }
  [[nodiscard]] std::optional<protocol::instant> due_at() const {
    return due_ ? std::optional{at_} : std::nullopt;
  }
  bool fire_if_due(protocol::instant now) {
    if (!due_ || at_ > now) return false;
    std::exchange(due_, nullptr)();
    return true;
  }
  int arms = 0;

 private:
  protocol::instant at_;
  std::function<void()> due_;
};

/// Everything of one thread: what is posted runs at once, or never while `lost` is set.
class inline_link final : public actors::shard_link {
 public:
  void post(std::size_t, std::function<void()> what) override {
    if (!lost) what();
  }
  bool lost = false;
};

/// A worker's end of a session, in memory: keeps what it was sent.
class memory_session final : public actors::outbound {
 public:
  void send(std::span<const protocol::coordinator_frame> frames) override {
    received.insert(received.end(), frames.begin(), frames.end());
    ++sends;
  }
  void close(protocol::close_code code, std::string_view) override {
    if (!closed) closed = code;
  }
  void pause_reading(bool on) override { paused = on; }

  /// The frames of one kind, in order.
  template <class Frame>
  [[nodiscard]] std::vector<Frame> all() const {
    std::vector<Frame> found;
    for (const auto& frame : received) {
      if (const auto* body = std::get_if<Frame>(&frame.body)) found.push_back(*body);
    }
    return found;
  }
  /// The newest answer to a frame.
  [[nodiscard]] std::optional<protocol::frame_verdict> verdict_of(std::int64_t frame_id) const {
    std::optional<protocol::frame_verdict> found;
    for (const auto& v : all<protocol::frame_verdict>()) {
      if (v.answers == frame_id) found = v;
    }
    return found;
  }

  std::vector<protocol::coordinator_frame> received;
  std::optional<protocol::close_code> closed;
  bool paused = false;
  int sends = 0;
};

/// A lock by the name that was typed, which is taken as normalised. Nothing is called "refused".
inline std::variant<actors::named_lock, actors::unnamed_lock> name_plainly(
    const protocol::tenant_id& tenant, const protocol::lock_name& typed) {
  if (typed.target == "refused") return actors::unnamed_lock{"The target is refused."};
  auto key = protocol::canonical_key(tenant, typed);
  const auto hash = protocol::to_text(protocol::policy_id{protocol::hash_of(key)});
  return actors::named_lock{typed, std::move(key), protocol::lease_id{"k:" + hash}};
}

class coordinator_rig {
 public:
  /// `instead`: a store that takes the place of the one in memory; it is done when a call returns.
  /// `dispatch`: without tokens nothing is dispatched.
  explicit coordinator_rig(std::shared_ptr<memory_store> where = std::make_shared<memory_store>(),
                           actors::actor_options options = {},
                           std::shared_ptr<manual_clock> time = std::make_shared<manual_clock>(),
                           bool restored_backup = false,
                           std::shared_ptr<actors::store> instead = nullptr,
                           actors::dispatch_means dispatch = {})
      : store(std::move(where)), clock(std::move(time)), config_(loop_), system_(config_) {
    actors::coordinator_options how;
    how.actors = std::move(options);
    how.store = instead ? std::move(instead) : store;
    how.clock = clock;
    store->dispatches().set_clock([time = clock] { return time->now(); });
    how.restored_backup = restored_backup;
    how.link = link;
    how.counters = counters;
    how.threads.push_back({&system_, timer});
    how.make_id = [this] { return "job-" + std::to_string(++made_ids_); };
    how.name_lock = name_plainly;
    how.dispatch = std::move(dispatch);
    how.on_fatal = [this](std::string_view why) { fatal = std::string(why); };
    auto started = actors::coordinator::start(std::move(how));
    if (auto* error = std::get_if<actors::store_error>(&started)) {
      start_error = *error;
    } else {
      coordinator = std::move(std::get<std::unique_ptr<actors::coordinator>>(started));
      settle();
    }
  }

  ~coordinator_rig() {
    if (coordinator) {
      coordinator->exit_thread(0);
      while (system_.registry().running() > 0) loop_.run_one_for(std::chrono::milliseconds(1));
    }
    system_.await_actors_before_shutdown(false);
    coordinator.reset();
  }

  /// Runs until nothing is left to do at this instant.
  void settle() {
    do {
      loop_.restart();
      loop_.poll();
    } while (timer->fire_if_due(clock->now()));
  }

  /// Lets time pass, stopping at each instant for which the timer was armed.
  void advance(std::int64_t ms) {
    const auto until = clock->now() + protocol::duration{ms};
    settle();
    while (timer->due_at() && *timer->due_at() <= until) {
      clock->set(protocol::later(*timer->due_at(), clock->now()));
      settle();
    }
    clock->set(until);
    settle();
  }

  void checkpoint() {
    coordinator->checkpoint();
    settle();
  }
  void cut_log() {
    coordinator->cut_log();
    settle();
  }

  actors::gateway& gateway() { return coordinator->on(0); }

  std::shared_ptr<memory_store> store;
  std::shared_ptr<manual_clock> clock;
  std::shared_ptr<manual_timer> timer = std::make_shared<manual_timer>();
  std::shared_ptr<inline_link> link = std::make_shared<inline_link>();
  std::shared_ptr<actors::counters> counters = std::make_shared<actors::counters>();
  std::unique_ptr<actors::coordinator> coordinator;
  std::optional<actors::store_error> start_error;
  std::string fatal;

 private:
  boost::asio::io_context loop_{1};
  server::loop_config config_;
  caf::actor_system system_;
  std::int64_t made_ids_ = 0;
};

/// A worker that speaks by hand: one session of the rig.
class rig_worker {
 public:
  rig_worker(coordinator_rig& rig, std::string name, const std::string& incarnation_digit = "a",
             std::vector<std::string> queues = {"q"}, std::vector<std::string> granted = {"*"})
      : rig_(rig), queues_(std::move(queues)) {
    who_.name = std::move(name);
    who_.tenant = protocol::tenant_id{"t"};
    who_.roles = {actors::role::worker};
    who_.queues = std::move(granted);
    who_.programs = {"*"};
    who_.max_leases = 1'000'000;
    while (incarnation_.size() < 32) incarnation_ += incarnation_digit;
    connect();
  }

  void connect(std::vector<protocol::running_lease> running = {}) {
    session = std::make_shared<memory_session>();
    epoch = rig_.gateway().open_session(who_, session);
    protocol::hello hello;
    hello.incarnation = incarnation_;
    hello.client_name = "rig";
    for (const auto& q : queues_) hello.queues.push_back({q, {}});
    hello.running = std::move(running);
    say(std::move(hello));
    rig_.settle();
  }
  void disconnect() {
    rig_.gateway().close_session(epoch);
    rig_.settle();
  }

  std::int64_t say(decltype(protocol::worker_frame::body) body) {
    std::vector<decltype(body)> one;
    one.push_back(std::move(body));
    return say_all(std::move(one));
  }
  /// Several frames in one message; yields the first one's id.
  std::int64_t say_all(std::vector<decltype(protocol::worker_frame::body)> bodies) {
    protocol::decoded_message<protocol::worker_frame> message;
    const auto first = next_frame_;
    for (auto& body : bodies) message.frames.push_back({next_frame_++, std::move(body)});
    rig_.gateway().deliver(epoch, std::move(message), rig_.clock->now());
    return first;
  }

  void credit(std::int64_t slots, const std::string& queue = "q") {
    say(protocol::credit{epoch, {++credit_sequence_}, queue, slots});
    rig_.settle();
  }
  [[nodiscard]] protocol::lease_frame frame(protocol::event_kind kind, const std::string& lease,
                                            std::int64_t gen, std::int64_t seq = 0) const {
    protocol::lease_frame f;
    f.what.kind = kind;
    f.what.lease = protocol::lease_id{lease};
    f.what.gen = {gen};
    f.what.from = holder();
    f.what.seq = {seq};
    f.what.sent_at = rig_.clock->now();
    return f;
  }
  /// Sends one frame, settles, and yields its answer.
  protocol::frame_verdict tell(protocol::lease_frame f) {
    const auto id = say(std::move(f));
    rig_.settle();
    return session->verdict_of(id).value_or(protocol::frame_verdict{});
  }
  protocol::frame_verdict ack(const std::string& lease, std::int64_t gen) {
    return tell(frame(protocol::event_kind::ack, lease, gen));
  }
  protocol::frame_verdict renew(const std::string& lease, std::int64_t gen, std::int64_t seq) {
    return tell(frame(protocol::event_kind::renew, lease, gen, seq));
  }
  protocol::frame_verdict progress(const std::string& lease, std::int64_t gen, std::int64_t seq,
                                   std::string value) {
    auto f = frame(protocol::event_kind::progress, lease, gen, seq);
    f.what.value = std::move(value);
    return tell(std::move(f));
  }
  protocol::frame_verdict result(const std::string& lease, std::int64_t gen,
                                 protocol::outcome how = protocol::outcome::success) {
    auto f = frame(protocol::event_kind::result, lease, gen);
    f.what.ending = how;
    return tell(std::move(f));
  }
  [[nodiscard]] protocol::holder holder() const {
    return protocol::holder{who_.name + "/" + incarnation_};
  }

  std::shared_ptr<memory_session> session;
  actors::session_id epoch = 0;

 private:
  coordinator_rig& rig_;
  actors::principal who_;
  std::string incarnation_;
  std::vector<std::string> queues_;
  std::int64_t next_frame_ = 1;
  std::int64_t credit_sequence_ = 0;
};

/// Submits a job to the rig and yields the answer.
inline actors::answer submit(coordinator_rig& rig, const std::string& id,
                             actors::job_spec spec = {}) {
  if (spec.queue.empty()) spec.queue = "q";
  // A commit that is held is answered after this returned.
  const auto said = std::make_shared<actors::answer>();
  rig.gateway().submit({protocol::tenant_id{"t"}, protocol::job_id{id}, std::move(spec)},
                       [said](actors::answer a) { *said = std::move(a); });
  rig.settle();
  return *said;
}

inline actors::answer operate(coordinator_rig& rig, const std::string& id, protocol::event what) {
  actors::answer said;
  rig.gateway().operate({protocol::tenant_id{"t"}, protocol::lease_id{id}}, std::move(what),
                        [&](actors::answer a) { said = std::move(a); });
  rig.settle();
  return said;
}

inline std::optional<actors::lease_view> job(coordinator_rig& rig, const std::string& id) {
  std::optional<actors::lease_view> found;
  rig.gateway().find_lease({protocol::tenant_id{"t"}, protocol::lease_id{id}},
                           [&](std::optional<actors::lease_view> v) { found = std::move(v); });
  rig.settle();
  return found;
}

}  // namespace leasehold::tests
