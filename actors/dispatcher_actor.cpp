#include "actors/dispatcher_actor.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace leasehold::actors {

namespace {

using protocol::dispatch_result;
using protocol::dispatch_stage;

constexpr std::size_t longest_node_bytes = 80;
/// Of the window for an acknowledgement, once it has passed: what another try takes.
constexpr std::int64_t later_part = 8;
constexpr protocol::duration trouble_pause{10'000};

/// Asks this actor's own thread; knows it by its handle alone, so that it may outlive it.
class stream_controller final : public execution_controller {
 public:
  explicit stream_controller(actor_handle to) : to_(std::move(to)) {}
  void act(const dispatch_claimed& claim, std::function<void(dispatch_result)> done) override {
    tell(to_, dispatch_act{claim, std::move(done)});
  }

 private:
  actor_handle to_;
};

}  // namespace

/// A runner's timer: messages of the actor to itself, of which the newest counts.
class dispatcher_actor::turn_timer final : public timer {
 public:
  turn_timer(dispatcher_actor& owner, std::size_t which) : owner_(&owner), which_(which) {}

  void arm(protocol::instant at, std::function<void()> due) override {
    if (owner_ == nullptr) return;
    due_ = std::move(due);
    const dispatch_timer_due message{which_, ++arming_};
    const auto pause = at.ms - owner_->context_->clock->now().ms;
    if (pause <= 0) {
      tell(owner_->self_.who, message);
    } else {
      owner_->delayed_send(owner_, std::chrono::milliseconds(pause), message);
    }
  }
  void disarm() override {
    ++arming_;
    due_ = nullptr;
  }
  void fire(std::int64_t arming) {
    if (arming != arming_ || !due_) return;
    std::exchange(due_, nullptr)();
  }
  /// Nothing is armed any more.
  void end() {
    disarm();
    owner_ = nullptr;
  }

 private:
  dispatcher_actor* owner_;
  std::size_t which_;
  std::int64_t arming_ = 0;
  std::function<void()> due_;
};

dispatcher_actor::dispatcher_actor(caf::actor_config& config, context_ptr context,
                                   dispatch_store& where, const dispatch_means& means)
    : coordinator_actor(config),
      context_(std::move(context)),
      options_(context_->options),
      // Calls on their way keep the supervisors: the store must not live as long as they do, because
      // they end with it.
      store_(std::shared_ptr<void>{}, &where),
      means_(means) {
  owner_ = options_->node.substr(0, longest_node_bytes) + "/" + means_.make_token().substr(0, 16);
}

dispatcher_actor::~dispatcher_actor() = default;

actor_behavior dispatcher_actor::make_behavior() {
  self_ = {context_->thread, caf::actor_cast<actor_handle>(this)};
  run_stage(dispatch_stage::stream, std::make_shared<stream_controller>(self_.who));
  for (const auto& [stage, by] : means_.controllers) {
    if (stage != dispatch_stage::stream && by) run_stage(stage, by);
  }
  return {
      [](const dispatch_turn& message) { message.what(); },
      [this](const dispatch_timer_due& due) {
        if (due.which < stages_.size()) stages_[due.which].timer->fire(due.arming);
      },
      [this](const dispatches_opened&) {
        for (const auto& each : stages_) each.runner->hurry();
      },
      [this](dispatch_act& message) { act(message); },
      [this](const holder_heard& said) {
        answer(said.ask, dispatch_result::termination_requested, false);
      },
      [this](const holder_absent& said) {
        answer(said.ask, dispatch_result::controller_missing, true);
      },
      [this](const holder_silent& said) { answer(said.ask, dispatch_result::dispatch_error, true); },
      [this](const exited_found& found) { give_proof(found); },
      [this](const dispatch_no_more&) { stop(); },
      [this](const options_changed& changed) { options_ = changed.options; },
  };
}

void dispatcher_actor::on_exit() {
  stop();
  for (const auto& each : stages_) each.timer->end();
  stages_.clear();
  asks_.clear();
  means_ = {};
  self_.who = nullptr;
}

void dispatcher_actor::broken(const std::exception_ptr&) {
  context_->on_fatal("the dispatcher actor failed");
}

// ---- stages

dispatch_strand dispatcher_actor::make_strand() const {
  return [link = context_->link, thread = context_->thread,
          self = self_.who](std::function<void()> what) {
    link->post(thread, [self, what = std::move(what)]() mutable {
      tell(self, dispatch_turn{std::move(what)});
    });
  };
}

void dispatcher_actor::run_stage(dispatch_stage stage, std::shared_ptr<execution_controller> by) {
  const auto which = stages_.size();
  dispatch_supervisor_options how;
  how.store = store_;
  how.controllers[stage] = std::move(by);
  how.stage = stage;
  how.host = means_.host;
  how.owner = owner_;
  how.make_token = means_.make_token;
  how.strand = make_strand();
  how.pace = options_->dispatch_pace;
  how.page = options_->dispatch.page;
  how.cycle_pages = options_->dispatch.cycle_pages;
  stage_run made;
  made.supervisor = std::make_shared<dispatch_supervisor>(std::move(how));
  made.timer = std::make_shared<turn_timer>(*this, which);
  made.runner = std::make_unique<dispatch_runner>(dispatch_runner_options{
      made.supervisor, options_->dispatch, made.timer, context_->clock, make_strand(),
      [this, which](const dispatch_cycle& did) { cycle_ended(which, did); }});
  made.runner->start();
  stages_.push_back(std::move(made));
}

void dispatcher_actor::cycle_ended(std::size_t which, const dispatch_cycle& did) {
  auto& counted = context_->counters->dispatch;
  counted.cycles.add();
  counted.claims.add(did.claimed);
  for (const auto& [result, number] : did.results) {
    counted.results[static_cast<std::size_t>(result) % counted.results.size()].add(number);
  }
  if (stopped_) return;
  if (did.error) {
    failed(*did.error);
  } else {
    if (std::exchange(in_trouble_, false) && means_.on_trouble) means_.on_trouble({});
    if (did.more) stages_[which].runner->hurry();
  }
  if (!stopped_) look_for_exited();
}

void dispatcher_actor::failed(const store_error& error) {
  context_->counters->dispatch.cycle_errors.add();
  const auto now = context_->clock->now();
  if (means_.on_trouble && (!in_trouble_ || trouble_told_ + trouble_pause <= now)) {
    trouble_told_ = now;
    means_.on_trouble(error.sentence);
  }
  in_trouble_ = true;
  // Somebody else has the store: nothing is dispatched from here any more.
  if (error.what == store_error::kind::deposed) stop();
}

void dispatcher_actor::stop() {
  if (std::exchange(stopped_, true)) return;
  for (const auto& each : stages_) each.runner->stop([](bool) {});
}

// ---- the stream

/// The holder was told when its cancel became durable, so the window begins there; a later try
/// waits for a part of it.
protocol::duration dispatcher_actor::window_of(const protocol::dispatch_record& record) const {
  const auto window = options_->ack_window;
  const auto left = record.cancel_requested_at.ms + window.ms - context_->clock->now().ms;
  return {std::max(left, window.ms / later_part)};
}

void dispatcher_actor::act(dispatch_act& message) {
  if (stopped_) return;  // the claim runs out
  const auto& record = message.claim.record;
  const auto ask = ++last_ask_;
  asks_[ask] = {record.key, std::move(message.done)};
  delayed_send(this, std::chrono::milliseconds(window_of(record).ms), holder_silent{ask});
  tell(*context_, context_->shard_for(record.key),
       ask_holder{self_, ask, record.key, record.gen});
}

void dispatcher_actor::answer(std::int64_t ask, dispatch_result what, bool shard_still_waits) {
  auto asked = asks_.extract(ask);
  if (asked.empty()) return;
  if (shard_still_waits) {
    const auto& key = asked.mapped().key;
    tell(*context_, context_->shard_for(key), stop_asking{key, ask});
  }
  asked.mapped().done(what);
}

// ---- proof

void dispatcher_actor::look_for_exited() {
  if (std::exchange(looks_for_exited_, true)) return;
  store_->exited(exited_since_, most_dispatches,
                 [link = context_->link, thread = context_->thread, self = self_.who](
                     store_result<std::vector<protocol::dispatch_record>> found) {
                   link->post(thread, [self, found = std::move(found)]() mutable {
                     tell(self, exited_found{std::move(found)});
                   });
                 });
}

void dispatcher_actor::give_proof(const exited_found& found) {
  looks_for_exited_ = false;
  if (stopped_) return;
  if (const auto* error = std::get_if<store_error>(&found.records)) return failed(*error);
  const auto& records = std::get<std::vector<protocol::dispatch_record>>(found.records);
  for (const auto& each : records) {
    tell(*context_, context_->shard_for(each.key), prove_gone{each.key, each.gen});
  }
  if (records.size() < most_dispatches) {
    exited_since_ = {};
    return;
  }
  // Attempts that are live yet do not hide those behind them.
  const auto last = records.back().updated_at;
  exited_since_ = last > exited_since_ ? last : protocol::instant{exited_since_.ms + 1};
  look_for_exited();
}

}  // namespace leasehold::actors
