#include "actors/thread_gateway.hpp"

#include <algorithm>
#include <utility>

#include "actors/acquire.hpp"
#include "actors/connection_actor.hpp"
#include "actors/queue_actor.hpp"
#include "actors/registry_actor.hpp"
#include "actors/shard_actor.hpp"

namespace leasehold::actors {

thread_gateway::thread_gateway(context_ptr context, actor_system& system,
                               std::function<session_id()> next_epoch,
                               std::function<std::string()> make_id)
    : context_(std::move(context)),
      options_(context_->options),
      system_(system),
      next_epoch_(std::move(next_epoch)),
      make_id_(std::move(make_id)) {}

// ---- sessions

session_id thread_gateway::open_session(const principal& who, std::shared_ptr<outbound> sink) {
  const auto epoch = next_epoch_();
  connections_[epoch].who =
      system_.spawn<connection_actor>(context_, options_, epoch, who, std::move(sink));
  context_->counters->sessions.add();
  context_->counters->sessions_opened.add();
  return epoch;
}

void thread_gateway::deliver(session_id session,
                             protocol::decoded_message<protocol::worker_frame> message,
                             protocol::instant ingress) {
  const auto it = connections_.find(session);
  if (it == connections_.end()) return;
  if (!std::exchange(it->second.may_have_frames, true)) read_since_fence_.push_back(session);
  tell(it->second.who, inbound_message{std::move(message), ingress});
}

void thread_gateway::close_session(session_id session) {
  const auto it = connections_.find(session);
  if (it == connections_.end() || !std::exchange(it->second.open, false)) return;
  context_->counters->sessions.add(-1);
  tell(it->second.who, socket_closed{});
}

void thread_gateway::connection_done(session_id session) {
  const auto it = connections_.find(session);
  if (it == connections_.end()) return;
  ask_to_exit(it->second.who);
  connections_.erase(it);
}

void thread_gateway::pass_fence(std::int64_t fence, const place& back_to) {
  fence_expected expected{fence, 0};
  for (const auto session : std::exchange(read_since_fence_, {})) {
    const auto it = connections_.find(session);
    if (it == connections_.end()) continue;
    it->second.may_have_frames = false;
    ++expected.connections;
    tell(it->second.who, fence_passing{fence, back_to});
  }
  tell(*context_, back_to, expected);
}

void thread_gateway::drain(protocol::instant release_by) {
  for (const auto& [session, each] : connections_) {
    tell(each.who, drain_session{release_by});
  }
}

void thread_gateway::change(const options_ptr& options) {
  options_ = options;
  for (const auto& [session, each] : connections_) tell(each.who, options_changed{options});
  tell(context_->shards[context_->thread].who, options_changed{options});
  if (context_->journal.thread == context_->thread) {
    tell(context_->journal.who, options_changed{options});
    if (context_->dispatcher.who) tell(context_->dispatcher.who, options_changed{options});
  }
}

void thread_gateway::exit_connections() {
  for (const auto& [session, each] : connections_) ask_to_exit(each.who);
  connections_.clear();
}

// ---- operations

void thread_gateway::submit(submit_request what, std::function<void(answer)> reply) {
  // A request id alone names the job, so that a repeat of the request finds it wherever it lives.
  const auto by_request = job_of_request(what.tenant, what.spec.request);
  const auto id = what.job                     ? what.job->value
                  : !what.spec.request.empty() ? by_request.lease.value
                                               : make_id_();
  shard_operation operation;
  operation.key = {what.tenant, protocol::lease_id{id}};
  operation.ingress = now();
  operation.what.kind = protocol::event_kind::submit;
  operation.what.lease = operation.key.lease;
  operation.what.job = protocol::job_id{id};
  operation.what.request = what.spec.request;
  operation.what.trace_id = what.spec.trace_id;
  what.spec.submitted_at = operation.ingress;
  operation.spec = std::make_shared<const job_spec>(std::move(what.spec));
  operation.reply = std::move(reply);
  operation.reply_thread = context_->thread;
  operation.may_create = true;
  if (!operation.what.request.empty() && operation.key != by_request) {
    // The request is known where the job would live that it names by itself.
    auto claim = std::make_shared<shard_operation>(std::move(operation));
    ask_shard(by_request, [claim](shard_actor& shard) { shard.claim_request(*claim); });
    return;
  }
  const auto& to = context_->shard_for(operation.key);
  tell(*context_, to, std::move(operation));
}

void thread_gateway::operate(protocol::lease_key key, protocol::event what,
                             std::function<void(answer)> reply) {
  shard_operation operation;
  operation.key = std::move(key);
  operation.ingress = now();
  operation.what = std::move(what);
  operation.what.lease = operation.key.lease;
  operation.reply = std::move(reply);
  operation.reply_thread = context_->thread;
  const auto& to = context_->shard_for(operation.key);
  tell(*context_, to, std::move(operation));
}

void thread_gateway::acquire(acquire_request what, std::function<void(answer)> reply) {
  auto operation = acquire_operation(std::move(what), *options_, now());
  operation.reply = std::move(reply);
  operation.reply_thread = context_->thread;
  send_acquire(*context_, std::move(operation));
}

// ---- queries

void thread_gateway::ask_shard(const protocol::lease_key& key,
                               std::function<void(shard_actor&)> ask) const {
  tell(*context_, context_->shard_for(key), shard_query{std::move(ask)});
}

void thread_gateway::find_lease(protocol::lease_key key,
                                std::function<void(std::optional<lease_view>)> reply) {
  ask_shard(key, [key, reply = std::move(reply), thread = context_->thread](shard_actor& shard) {
    const auto* entry = shard.find(key);
    shard.context().link->post(thread, [reply, view = entry ? std::optional{shard.view_of(*entry)}
                                                            : std::nullopt] { reply(view); });
  });
}

void thread_gateway::await(protocol::lease_key key, protocol::instant until,
                           std::function<shard_actor::record_test(const shard_actor&)> wanted,
                           shard_actor::view_reply reply) {
  ask_shard(key, [key, until, wanted = std::move(wanted), reply = std::move(reply),
                  thread = context_->thread](shard_actor& shard) {
    shard.await(key, until, wanted(shard),
                [&link = *shard.context().link, reply, thread](std::optional<lease_view> view) {
                  link.post(thread, [reply, view = std::move(view)] { reply(view); });
                });
  });
}

void thread_gateway::await_settled(protocol::lease_key key, protocol::instant until,
                                   std::function<void(std::optional<lease_view>)> reply) {
  await(
      std::move(key), until,
      [](const shard_actor&) -> shard_actor::record_test {
        return [](const protocol::record& r) { return protocol::is_settled(r.state); };
      },
      std::move(reply));
}

namespace {

/// The generation that has authority as far as the record says; 0: none has.
protocol::generation live_generation(const protocol::record& r) {
  return protocol::is_live(r.state) && !r.frozen ? r.gen : protocol::generation{};
}

}  // namespace

void thread_gateway::await_change(protocol::lease_key key, std::optional<protocol::generation> gen,
                                  protocol::instant until,
                                  std::function<void(std::optional<lease_view>)> reply) {
  await(
      key, until,
      [key, gen](const shard_actor& shard) -> shard_actor::record_test {
        const auto* entry = shard.find(key);
        const auto known = gen                ? *gen
                           : entry != nullptr ? live_generation(*entry->state())
                                              : protocol::generation{};
        return [known](const protocol::record& r) { return live_generation(r) != known; };
      },
      std::move(reply));
}

void thread_gateway::find_fence(protocol::lease_key key, std::function<void(fence_view)> reply) {
  ask_shard(key, [key, reply = std::move(reply), thread = context_->thread](shard_actor& shard) {
    shard.context().link->post(thread, [reply, fence = shard.fence_of(key)] { reply(fence); });
  });
}

namespace {

bool matches(const lease_entry& entry, const job_filter& filter) {
  if (filter.queue && *entry.queue() != *filter.queue) return false;
  if (filter.state && entry.state()->state != *filter.state) return false;
  if (filter.labels.empty()) return true;
  const auto spec = decode_job(entry.facts().body).value_or(job_spec{});
  return std::ranges::all_of(filter.labels, [&](const auto& label) {
    const auto it = spec.labels.find(label.first);
    return it != spec.labels.end() && it->second == label.second;
  });
}

bool is_owned_by(const protocol::record& lock, const std::string& owner) {
  const auto& holder = lock.held_by.value;
  if (!holder.starts_with(owner)) return false;
  return holder.size() == owner.size() ||
         (holder[owner.size()] == '/' && owner.find('/') == std::string::npos);
}

bool matches(const lease_entry& entry, const lock_filter& filter) {
  if (filter.program && *entry.program() != *filter.program) return false;
  if (!filter.state && !filter.owner && !filter.target) return true;
  const auto facts = entry.facts();
  if (filter.state && facts.state->state != *filter.state) return false;
  if (filter.owner && !is_owned_by(*facts.state, *filter.owner)) return false;
  if (!filter.target) return true;
  const auto spec = decode_lock(facts.body);
  return spec && spec->name.kind == filter.target->first &&
         spec->name.target == filter.target->second;
}

/// What one thread found: leases in the order of their ids, and how far it looked.
struct found_leases {
  std::vector<lease_view> leases;
  std::string looked_upto;  ///< empty: to the end
};

/// What the threads have answered so far; lives on the thread that asked.
struct gathered_leases {
  std::size_t threads_left = 0;
  std::size_t page_size = 0;
  std::vector<lease_view> leases;
  std::optional<std::string> looked_upto;  ///< by every thread; nothing: to the end
  std::function<void(std::vector<lease_view> leases, std::string next)> reply;

  void add(found_leases more) {
    std::ranges::move(more.leases, std::back_inserter(leases));
    if (!more.looked_upto.empty() && (!looked_upto || more.looked_upto < *looked_upto)) {
      looked_upto = std::move(more.looked_upto);
    }
    if (--threads_left == 0) finish();
  }

  void finish() {
    std::ranges::sort(leases, {}, [](const lease_view& v) { return v.state->lease; });
    if (looked_upto) {
      std::erase_if(leases,
                    [&](const lease_view& v) { return v.state->lease.value > *looked_upto; });
    }
    std::string next = looked_upto.value_or("");
    if (leases.size() > page_size) {
      leases.resize(page_size);
      next = leases.back().state->lease.value;
    }
    reply(std::move(leases), std::move(next));
  }
};

/// Collects what matches; a turn of a thread looks at so many leases and no more.
template <class Filter>
struct lease_search {
  static constexpr std::size_t most_looked_at = 10'000;
  const shard_actor& asked;
  const Filter& filter;
  std::size_t page_size;
  found_leases found{};
  std::size_t looked_at = 0;

  bool take(const lease_entry& entry) {
    if (matches(entry, filter)) found.leases.push_back(asked.view_of(entry));
    if (found.leases.size() > page_size) {
      found.looked_upto = entry.lease();
      return false;
    }
    if (++looked_at < most_looked_at) return true;
    found.looked_upto = entry.lease();
    return false;
  }
};

}  // namespace

template <class Filter, class Each>
void thread_gateway::search(const Filter& filter, const std::string& page_token,
                            std::size_t page_size, Each each,
                            std::function<void(std::vector<lease_view>, std::string)> reply) {
  auto gathered = std::make_shared<gathered_leases>();
  gathered->threads_left = context_->threads;
  gathered->page_size = page_size;
  gathered->reply = std::move(reply);
  for (const auto& shard : context_->shards) {
    tell(*context_, shard,
         shard_query{[filter, page_token, page_size, each, gathered,
                      thread = context_->thread](shard_actor& asked) {
           lease_search<Filter> search{asked, filter, page_size};
           each(asked, page_token, [&](const lease_entry& entry) { return search.take(entry); });
           asked.context().link->post(thread,
                                      [gathered, found = std::move(search.found)]() mutable {
                                        gathered->add(std::move(found));
                                      });
         }});
  }
}

void thread_gateway::list_jobs(job_filter filter, std::string page_token, std::size_t page_size,
                               std::function<void(job_page)> reply) {
  search(
      filter, page_token, page_size,
      [tenant = filter.tenant](const shard_actor& asked, const std::string& after, auto take) {
        asked.each_job(tenant, after, take);
      },
      [reply = std::move(reply)](std::vector<lease_view> jobs, std::string next) {
        reply({std::move(jobs), std::move(next)});
      });
}

void thread_gateway::list_locks(lock_filter filter, std::string page_token, std::size_t page_size,
                                std::function<void(lock_page)> reply) {
  search(
      filter, page_token, page_size,
      [tenant = filter.tenant](const shard_actor& asked, const std::string& after, auto take) {
        asked.each_lock(tenant, after, take);
      },
      [reply = std::move(reply)](std::vector<lease_view> locks, std::string next) {
        reply({std::move(locks), std::move(next)});
      });
}

void thread_gateway::each_queue(const protocol::tenant_id& tenant, queue_reader read,
                                std::function<void()> done) {
  struct progress {
    std::size_t shards_left = 0;
    std::size_t queues_left = 0;
    std::function<void()> done;
    void step() const {
      if (shards_left == 0 && queues_left == 0) done();
    }
  };
  auto p = std::make_shared<progress>();
  p->shards_left = context_->threads;
  p->done = std::move(done);
  auto ask_queue = [this, tenant, read = std::move(read), p](const std::string& name) {
    ++p->queues_left;
    const auto thread = context_->thread_of_queue(tenant, name);
    queue_query query{
        [read, name, p, link = context_->link, here = context_->thread](queue_actor& queue) {
          read(name, queue);
          link->post(here, [p] {
            --p->queues_left;
            p->step();
          });
        }};
    tell(*context_, context_->shards[thread], for_queue{{tenant, name}, std::move(query)});
  };
  for (const auto& shard : context_->shards) {
    tell(*context_, shard,
         shard_query{[tenant, ask_queue, p, here = context_->thread](shard_actor& asked) {
           asked.context().link->post(here, [names = asked.queues_of(tenant), ask_queue, p] {
             for (const auto& name : names) ask_queue(name);
             --p->shards_left;
             p->step();
           });
         }});
  }
}

void thread_gateway::queues(protocol::tenant_id tenant,
                            std::function<void(std::vector<queue_view>)> reply) {
  auto found = std::make_shared<std::vector<queue_view>>();
  each_queue(
      tenant,
      [found, link = context_->link, here = context_->thread](const std::string&,
                                                              queue_actor& queue) {
        link->post(here, [found, view = queue.view()] { found->push_back(view); });
      },
      [found, reply = std::move(reply)] {
        std::ranges::sort(*found, {}, &queue_view::queue);
        reply(std::move(*found));
      });
}

void thread_gateway::workers(protocol::tenant_id tenant,
                             std::function<void(std::vector<worker_view>)> reply) {
  using uses = std::vector<std::pair<std::string, std::vector<queue_actor::session_use>>>;
  auto used = std::make_shared<uses>();
  auto then = [this, tenant, used, reply = std::move(reply)] {
    registry_query query{[tenant, used, reply, link = context_->link,
                          here = context_->thread](registry_actor& registry) {
      auto views = registry.workers(tenant);
      for (const auto& [queue, sessions] : *used) {
        for (const auto& use : sessions) {
          const auto it = std::ranges::find(views, use.holder, &worker_view::holder);
          if (it == views.end()) continue;
          it->slots[queue] = use.slots;
          it->held[queue] = use.held;
        }
      }
      link->post(here, [reply, views = std::move(views)] { reply(views); });
    }};
    tell(*context_, context_->registry, std::move(query));
  };
  each_queue(
      tenant,
      [used, link = context_->link, here = context_->thread](const std::string& name,
                                                             queue_actor& queue) {
        link->post(here, [used, name, sessions = queue.sessions()] {
          used->emplace_back(name, sessions);
        });
      },
      std::move(then));
}

namespace {

/// Why the lease itself keeps the job from being offered; nothing when only its queue knows.
std::optional<std::pair<std::string, std::string>> why_of_record(const protocol::record& r) {
  using pair = std::pair<std::string, std::string>;
  if (protocol::is_settled(r.state))
    return pair{"settled", "The job has ended; submit or redrive a new one."};
  if (r.frozen) return pair{"frozen", "An ownership conflict is open; resolve or revoke it."};
  if (protocol::is_live(r.state))
    return pair{"held", "A worker has been offered the job or works on it."};
  if (r.state == protocol::lease_state::unresolved) {
    return pair{"unresolved",
                "The job was cancelled and work of an earlier holder may still run; it is never "
                "offered again."};
  }
  return std::nullopt;
}

}  // namespace

void thread_gateway::why(protocol::lease_key key,
                         std::function<void(std::optional<why_view>)> reply) {
  find_lease(key, [this, key, reply = std::move(reply)](std::optional<lease_view> found) {
    if (!found || !found->spec) {
      reply(std::nullopt);
      return;
    }
    why_view view{*found, {}, {}};
    if (auto because = why_of_record(*found->state)) {
      std::tie(view.word, view.sentence) = *because;
      reply(std::move(view));
      return;
    }
    const auto& queue = found->spec->queue;
    queue_query query{
        [key, view, reply, link = context_->link, here = context_->thread](queue_actor& asked) {
          auto said = view;
          std::tie(said.word, said.sentence) = asked.why(key);
          link->post(here, [reply, said = std::move(said)] { reply(said); });
        }};
    tell(*context_, context_->shards[context_->thread_of_queue(key.tenant, queue)],
         for_queue{{key.tenant, queue}, std::move(query)});
  });
}

std::int64_t thread_gateway::watch(std::function<void(protocol::row_number)> on_rows) {
  // Ids of different threads differ.
  const auto id = next_watch_++ * static_cast<std::int64_t>(context_->threads) +
                  static_cast<std::int64_t>(context_->thread);
  tell(*context_, context_->journal, watch_rows{id, context_->thread, std::move(on_rows)});
  return id;
}

void thread_gateway::unwatch(std::int64_t watch) {
  tell(*context_, context_->journal, unwatch_rows{watch});
}

}  // namespace leasehold::actors
