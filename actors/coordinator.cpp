#include "leasehold/actors/coordinator.hpp"

#include <atomic>
#include <future>
#include <utility>

#include "actors/dispatcher_actor.hpp"
#include "actors/journal_actor.hpp"
#include "actors/recovery.hpp"
#include "actors/registry_actor.hpp"
#include "actors/shard_actor.hpp"
#include "actors/thread_gateway.hpp"
#include "actors/usage.hpp"

namespace leasehold::actors {

namespace {

bool keeps_dispatches(store& where) {
  const auto said = where.dispatches().now();
  const auto* error = std::get_if<store_error>(&said);
  return error == nullptr || error->what != store_error::kind::foreign;
}

}  // namespace

struct coordinator::parts : std::enable_shared_from_this<coordinator::parts> {
  parts() = default;
  parts(const parts&) = delete;
  parts& operator=(const parts&) = delete;
  coordinator_options options;
  std::vector<std::shared_ptr<thread_context>> contexts;
  std::vector<std::unique_ptr<thread_gateway>> gateways;
  std::atomic<session_id> next_epoch{0};

  /// Runs `what` on a thread and waits for it.
  template <class Function>
  void run_on(std::size_t thread, Function what) {
    std::promise<void> ran;
    options.link->post(thread, [&] {
      what();
      ran.set_value();
    });
    ran.get_future().get();
  }

  /// Actors know the contexts, and these the actors: letting go of the places ends that. The actors
  /// have ended by then.
  ~parts() {
    for (auto& context : contexts) {
      context->shards.clear();
      context->journal = {};
      context->registry = {};
      context->dispatcher = {};
    }
  }

  /// Runs `what` on a thread, unless the coordinator is gone by then.
  void post(std::size_t thread, std::function<void(thread_gateway&)> what) {
    options.link->post(thread, [weak = weak_from_this(), thread, what = std::move(what)] {
      if (const auto self = weak.lock()) what(*self->gateways[thread]);
    });
  }

  void make_contexts();
  void spawn(const recovered_leases& found);
  void share_places();
};

void coordinator::parts::make_contexts() {
  const auto shared = std::make_shared<usage>();
  const auto chosen = std::make_shared<const actor_options>(options.actors);
  const bool keeps = keeps_dispatches(*options.store);
  // What was posted to a thread and runs late must not find the coordinator gone.
  const std::weak_ptr<parts> weak = weak_from_this();
  for (std::size_t thread = 0; thread < options.threads.size(); ++thread) {
    auto context = std::make_shared<thread_context>();
    context->usage = shared;
    context->thread = thread;
    context->threads = options.threads.size();
    context->options = chosen;
    context->clock = options.clock;
    context->timer = options.threads[thread].timer;
    context->link = options.link;
    context->name_lock = options.name_lock;
    context->counters = options.counters;
    context->on_fatal = options.on_fatal;
    context->on_store_trouble = options.on_store_trouble;
    context->pass_fence = [weak](std::size_t on, std::int64_t fence, const place& back_to) {
      if (const auto self = weak.lock()) self->gateways[on]->pass_fence(fence, back_to);
    };
    context->connection_done = [weak, thread](session_id session) {
      if (const auto self = weak.lock()) self->gateways[thread]->connection_done(session);
    };
    context->keeps_dispatches = keeps;
    context->shards.resize(options.threads.size());
    contexts.push_back(std::move(context));
  }
}

void coordinator::parts::spawn(const recovered_leases& found) {
  // A lazy actor does not run before its first message, which is sent once every place is known:
  // on a scheduler of several workers it would else read the contexts while they are written.
  using caf::lazy_init;
  // Epochs rise across restarts: they go on from the coordinator's clock, which never runs
  // backwards, with room for more sessions in a millisecond than can be opened in one.
  constexpr session_id epochs_of_a_ms = 64;
  next_epoch = options.clock->now().ms * epochs_of_a_ms;
  for (auto& context : contexts) context->grants_from = found.state.grants_from;
  for (std::size_t thread = 0; thread < options.threads.size(); ++thread) {
    auto& context = contexts[thread];
    auto& system = *options.threads[thread].system;
    run_on(thread, [&] {
      if (thread == 0) {
        contexts[0]->journal.who =
            system.spawn<journal_actor, lazy_init>(context, options.store, found);
        contexts[0]->registry.who = system.spawn<registry_actor, lazy_init>(context);
        if (options.dispatch.make_token && context->keeps_dispatches) {
          contexts[0]->dispatcher.who = system.spawn<dispatcher_actor, lazy_init>(
              context, options.store->dispatches(), options.dispatch);
        }
      }
      context->shards[thread] = {thread, system.spawn<shard_actor, lazy_init>(context)};
      gateways.push_back(std::make_unique<thread_gateway>(
          context, system, [this] { return ++next_epoch; }, options.make_id));
    });
  }
}

void coordinator::parts::share_places() {
  for (auto& context : contexts) {
    context->journal = contexts[0]->journal;
    context->registry = contexts[0]->registry;
    context->dispatcher = contexts[0]->dispatcher;
    for (std::size_t thread = 0; thread < contexts.size(); ++thread) {
      context->shards[thread] = contexts[thread]->shards[thread];
    }
  }
}

store_result<std::unique_ptr<coordinator>> coordinator::start(coordinator_options options) {
  auto made = std::make_shared<parts>();
  made->options = std::move(options);
  made->make_contexts();
  const std::vector<context_ptr> contexts(made->contexts.begin(), made->contexts.end());
  auto found = recover_leases(*made->options.store, *made->options.clock, made->options.clock_basis,
                              made->options.restored_backup, contexts);
  if (auto* error = std::get_if<store_error>(&found)) return std::move(*error);
  auto& leases = std::get<recovered_leases>(found);
  made->spawn(leases);
  made->share_places();
  for (std::size_t thread = 0; thread < contexts.size(); ++thread) {
    made->run_on(thread, [&] {
      tell(contexts[thread]->shards[thread].who, std::move(leases.by_thread[thread]));
    });
  }
  made->run_on(0, [&] {
    tell(contexts[0]->journal.who, journal_now{});
    // Its first cycle finds what waited for this start.
    if (contexts[0]->dispatcher.who) tell(contexts[0]->dispatcher.who, dispatches_opened{});
  });
  return std::unique_ptr<coordinator>(new coordinator(std::move(made)));
}

coordinator::coordinator(std::shared_ptr<parts> made) : parts_(std::move(made)) {}
coordinator::~coordinator() = default;

gateway& coordinator::on(std::size_t thread) noexcept { return *parts_->gateways[thread]; }

void coordinator::change(const actor_options& options) {
  const auto chosen = std::make_shared<const actor_options>(options);
  for (std::size_t thread = 0; thread < parts_->contexts.size(); ++thread) {
    parts_->post(thread, [chosen](thread_gateway& on) { on.change(chosen); });
  }
}

void coordinator::checkpoint() {
  parts_->options.link->post(0, [who = parts_->contexts[0]->journal.who] {
    tell(who, journal_now{true, false});
  });
}

void coordinator::cut_log() {
  parts_->options.link->post(0, [who = parts_->contexts[0]->journal.who] {
    tell(who, journal_now{false, true});
  });
}

void coordinator::drain(protocol::instant release_by) {
  for (std::size_t thread = 0; thread < parts_->contexts.size(); ++thread) {
    parts_->post(thread, [release_by](thread_gateway& on) { on.drain(release_by); });
  }
  if (const auto& dispatcher = parts_->contexts[0]->dispatcher.who) {
    parts_->options.link->post(0, [dispatcher] { tell(dispatcher, dispatch_no_more{}); });
  }
}

void coordinator::exit_thread(std::size_t thread) {
  parts_->gateways[thread]->exit_connections();
  auto& context = *parts_->contexts[thread];
  ask_to_exit(context.shards[thread].who);
  if (thread == 0) {
    ask_to_exit(context.journal.who);
    ask_to_exit(context.registry.who);
    if (context.dispatcher.who) ask_to_exit(context.dispatcher.who);
  }
}

}  // namespace leasehold::actors
