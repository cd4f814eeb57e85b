// leaseholdd put together, in the order in which its parts need each other.
#include <unistd.h>

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <future>
#include <iostream>

#include "src/admission.hpp"
#include "src/controllers/process_controller.hpp"
#include "src/dispatch_census.hpp"
#include "src/http_api_evidence.hpp"
#include "src/keys/normalise.hpp"
#include "src/loop_link.hpp"
#include "src/metrics.hpp"
#include "src/net_limits.hpp"
#include "src/server_parts.hpp"
#include "src/token_file.hpp"

namespace leasehold::server {
namespace {

using std::chrono::milliseconds;

accepted_clock accepted_of(const options& chosen) {
  if (chosen.accept_clock == "wall") return accepted_clock::wall;
  if (chosen.accept_clock == "anchor") return accepted_clock::anchor;
  return accepted_clock::none;
}

/// The anchor of the newest batch: where the clock goes on from.
actors::store_result<std::optional<actors::clock_anchor>> newest_anchor(actors::store& from) {
  auto head = from.head();
  if (auto* fault = std::get_if<actors::store_error>(&head)) return *fault;
  const auto last = std::get<actors::log_head>(head).last_row;
  if (last.value == 0) return std::optional<actors::clock_anchor>{};
  auto newest = from.batches_from(last, 1);
  if (auto* fault = std::get_if<actors::store_error>(&newest)) return *fault;
  const auto& batches = std::get<std::vector<actors::stored_batch>>(newest);
  if (batches.empty()) return std::optional<actors::clock_anchor>{};
  return std::optional(batches.front().anchor);
}

/// Runs `what` on a loop and waits for it.
void run_on(thread_loop& loop, const std::function<void()>& what) {
  std::promise<void> ran;
  loop.post([&] {
    what();
    ran.set_value();
  });
  ran.get_future().get();
}

std::variant<actors::named_lock, actors::unnamed_lock> name_lock(const protocol::tenant_id& tenant,
                                                                 const protocol::lock_name& typed) {
  auto normalised = keys::normalise(typed);
  if (auto* refused = std::get_if<keys::refusal>(&normalised)) {
    return actors::unnamed_lock{std::move(refused->sentence)};
  }
  actors::named_lock lock;
  lock.name = std::move(std::get<protocol::lock_name>(normalised));
  lock.canonical = protocol::canonical_key(tenant, lock.name);
  lock.lease = keys::lock_lease_id(lock.canonical);
  return lock;
}

}  // namespace

actors::actor_options actor_options_of(const options& chosen) {
  actors::actor_options out;
  out.frames_in_flight = chosen.frames_in_flight;
  out.heartbeat_interval = chosen.heartbeat;
  out.max_expiry_lag = chosen.max_expiry_lag;
  out.message_bytes = chosen.message_bytes;
  out.leases_per_tenant = chosen.leases_per_tenant;
  out.retention = chosen.retention;
  out.forget_after = chosen.forget_after;
  out.waiters_per_lock = static_cast<std::size_t>(chosen.waiters_per_lock);
  out.longest_wait = chosen.longest_lock_wait;
  out.lock_policy = chosen.policy;
  out.payload_bytes = chosen.payload_memory_bytes;
  for (const auto& [name, queue] : chosen.queues) {
    if (queue.max_live > 0) out.queue_limits[name] = queue.max_live;
  }
  out.node = chosen.node;
  out.dispatch = actors::dispatch_profile_of(chosen.dispatch_profile).value_or(out.dispatch);
  out.dispatch_pace = {chosen.dispatch_claim, chosen.dispatch_backoff, chosen.dispatch_backoff_max};
  out.ack_window = chosen.dispatch_ack_window;
  return out;
}

principal_set capped(principal_set all, const options& chosen) {
  for (principal_entry& entry : all.entries) {
    entry.who.max_leases = std::min(entry.who.max_leases, chosen.leases_per_worker);
  }
  return all;
}

std::optional<start_failed> server::parts::read_access() {
  const options& o = how.chosen;
  auto prepared = prepare_directory(o.data_directory(), o.principals_file(), !o.principals.empty());
  if (auto* fault = std::get_if<token_fault>(&prepared)) {
    return start_failed{fault->sentence, exit_bad_options};
  }
  const auto& first = std::get<first_start>(prepared);
  const bool is_its_place =
      o.place_of_store() == storage::store_place(storage::sqlite_place{o.data_directory()});
  if (first.store_is_gone && is_its_place) {
    lines->write(log_level::warn,
                 "a new store is made in a directory that was used before: if it had a store, stop "
                 "here and restore that one",
                 {{"data", o.data}});
  }
  if (first.operator_token) {
    lines->write(log_level::info, "first start: the operator's token was written",
                 {{"file", first.operator_token->string()}});
    if (isatty(STDOUT_FILENO) == 1) {
      std::cout << "The operator's token is in " << first.operator_token->string()
                << "; only you can read it." << std::endl;
    }
  }
  auto read = read_principals(o.principals_file());
  if (auto* fault = std::get_if<principals_fault>(&read)) {
    return start_failed{fault->sentence, exit_bad_options};
  }
  principals =
      std::make_shared<principal_registry>(capped(std::move(std::get<principal_set>(read)), o));
  return std::nullopt;
}

tls_files tls_files_of(const options& chosen) {
  auto clients = client_certificates::none;
  if (chosen.tls_client_certificates == "optional") clients = client_certificates::optional;
  if (chosen.tls_client_certificates == "required") clients = client_certificates::required;
  return {chosen.tls_certificate, chosen.tls_private_key, chosen.tls_client_ca, clients};
}

std::optional<start_failed> server::parts::read_tls() {
  if (!how.chosen.has_tls()) return std::nullopt;
  auto read = tls_context::read(tls_files_of(how.chosen));
  if (auto* fault = std::get_if<tls_fault>(&read)) {
    return start_failed{fault->sentence, exit_bad_options};
  }
  tls = std::make_shared<live_tls>(std::get<std::shared_ptr<const tls_context>>(std::move(read)));
  tell_certificate(how.chosen);
  return std::nullopt;
}

std::optional<start_failed> server::parts::open_store() {
  const auto place = std::get<storage::sqlite_place>(how.chosen.place_of_store());
  auto opened = storage::open_sqlite_store(
      {.directory = place.directory,
       .restored_backup = how.restored_backup,
       .on_damage =
           [this](const std::string& sentence) {
             counters->store_damaged.set(1);
             lines->write(log_level::error, "the store is damaged", {{"why", sentence}});
           },
       .on_unguarded =
           [this](const std::string& sentence) {
             lines->write(log_level::warn, "the end of the log is not guarded",
                          {{"why", sentence}});
           },
       .now = [this] { return clock->now(); }});
  if (auto* fault = std::get_if<actors::store_error>(&opened)) return start_failed{fault->sentence};
  store = std::move(std::get<std::unique_ptr<actors::store>>(opened));
  return start_clock({});
}

std::optional<start_failed> server::parts::start_clock(protocol::duration behind) {
  auto anchor = newest_anchor(*store);
  if (auto* fault = std::get_if<actors::store_error>(&anchor)) return start_failed{fault->sentence};
  auto started =
      system_clock::start(machine_clocks(), std::get<std::optional<actors::clock_anchor>>(anchor),
                          how.chosen.max_downtime, accepted_of(how.chosen), behind);
  if (auto* refused = std::get_if<clock_refused>(&started)) return start_failed{refused->sentence};
  clock = std::get<std::shared_ptr<system_clock>>(started);
  return std::nullopt;
}

void server::parts::start_loops() {
  for (std::int64_t i = 0; i < how.chosen.threads; ++i) {
    auto& loop = loops.emplace_back(std::make_unique<thread_loop>(
        thread_loop::options{.name = "lh-loop-" + std::to_string(i)}));
    loop->start();
  }
}

void server::parts::make_timers() {
  for (auto& loop : loops) {
    run_on(*loop, [&] { timers.push_back(std::make_shared<boot_timer>(loop->io(), clock)); });
  }
}

namespace {

/// The steps of ending a process fit into one claim, whatever its length.
controllers::process_options process_options_of(const options& chosen,
                                                const clock_sources& clocks) {
  controllers::process_options how;
  how.boot_id = clocks.boot_id;
  how.boottime_ms = clocks.boottime_ms;
  how.claim = chosen.dispatch_claim;
  how.term_grace = std::min(how.term_grace, protocol::duration{how.claim.ms / 3});
  how.kill_wait = std::min(how.kill_wait, protocol::duration{how.claim.ms / 6});
  return how;
}

std::optional<start_failed> add_process_controller(const options& chosen,
                                                   const std::shared_ptr<const system_clock>& clock,
                                                   actors::dispatch_means& means) {
  const auto& wanted = chosen.dispatch_controllers;
  if (std::ranges::find(wanted, "process") == wanted.end()) return std::nullopt;
  const auto clocks = machine_clocks();
  auto process = process_options_of(chosen, clocks);
  process.now = [clock] { return std::optional(clock->now()); };
  auto made = controllers::process_controller::start(std::move(process));
  if (auto* why = std::get_if<std::string>(&made)) {
    return start_failed{"dispatch.controllers names process: " + *why, exit_bad_options};
  }
  means.host = clocks.boot_id;
  means.controllers[protocol::dispatch_stage::process] =
      std::get<std::shared_ptr<controllers::process_controller>>(std::move(made));
  return std::nullopt;
}

}  // namespace

std::optional<start_failed> server::parts::start_coordinator() {
  actors::coordinator_options o;
  o.actors = actor_options_of(how.chosen);
  o.store = store;
  o.clock = clock;
  o.clock_basis = word(clock->basis());
  o.restored_backup = how.restored_backup;
  std::vector<thread_loop*> all;
  for (std::size_t i = 0; i < loops.size(); ++i) {
    all.push_back(loops[i].get());
    o.threads.push_back({&loops[i]->system(), timers[i]});
  }
  o.link = std::make_shared<loop_link>(std::move(all));
  o.counters = counters;
  o.name_lock = name_lock;
  o.make_id = [] { return "j-" + random_hex(32); };
  o.dispatch.make_token = [] { return random_hex(32); };
  o.dispatch.on_trouble = [this](std::string_view why) {
    if (why.empty()) {
      lines->write(log_level::info, "cancels are dispatched again");
    } else {
      lines->write(log_level::warn, "cancels are not dispatched", {{"why", why}});
    }
  };
  if (auto failed = add_process_controller(how.chosen, clock, o.dispatch)) return failed;
  o.on_store_trouble = [this](std::string_view why) {
    if (why.empty()) {
      lines->write(log_level::info, "the store takes writes again");
    } else {
      lines->write(log_level::error, "the store takes no writes; nothing is granted",
                   {{"why", why}});
    }
  };
  o.on_fatal = [this](std::string_view why) {
    lines->write(log_level::error, "cannot go on; the process ends and recovers at its next start",
                 {{"why", why}});
    end_at_once(EXIT_FAILURE);
  };
  auto started = actors::coordinator::start(std::move(o));
  if (auto* fault = std::get_if<actors::store_error>(&started))
    return start_failed{fault->sentence};
  coordinator = std::move(std::get<std::unique_ptr<actors::coordinator>>(started));
  return std::nullopt;
}

void server::parts::hand_over() {
  const auto evidence = std::make_shared<evidence_reader>(store);
  const auto dispatches = std::shared_ptr<actors::dispatch_store>(store, &store->dispatches());
  const auto census = std::make_shared<dispatch_census>(dispatches, reads);
  for (std::size_t i = 0; i < apis.size(); ++i) {
    run_on(*loops[i], [&, known = apis[i]] {
      const auto api = known.lock();
      if (api == nullptr) return;
      api->shared.store = store;
      api->shared.evidence = evidence;
      api->shared.dispatches = dispatches;
      api->shared.census = census;
      api->gateway = &coordinator->on(i);
    });
  }
}

std::shared_ptr<http_api> server::parts::make_api(std::size_t thread, const api_shared& shared) {
  auto api = std::make_shared<api_context>();
  api->shared = shared;
  thread_loop* loop = loops[thread].get();
  api->post = [loop](std::function<void()> what) { loop->post(std::move(what)); };
  api->after = [loop](protocol::duration pause, std::function<void()> what) {
    auto timer = std::make_shared<boost::asio::steady_timer>(loop->io(), milliseconds{pause.ms});
    timer->async_wait([timer, what = std::move(what)](const boost::system::error_code& cancelled) {
      if (!cancelled) what();
    });
  };
  apis.push_back(api);
  return std::make_shared<http_api>(std::move(api));
}

std::optional<start_failed> server::parts::listen() {
  api_shared shared;
  shared.chosen = chosen;
  shared.principals = principals;
  shared.reads = reads;
  shared.rates = std::make_shared<rate_limits>();
  shared.sessions = std::make_shared<tenant_quota>();
  shared.lines = lines;
  shared.counters = counters;
  shared.role = role;
  shared.metrics = [this] {
    return metrics_page({counters}, lines.get(), &ears->counters(),
                        tls == nullptr ? 0 : tls->current()->expires_s(), role.get());
  };
  shared.unready = [this] { return why_unready(); };
  shared.full = [this] { return ears->full(); };

  std::vector<listener::thread> threads;
  for (std::size_t i = 0; i < loops.size(); ++i) {
    threads.push_back({loops[i].get(), make_api(i, shared)});
  }
  ears = std::make_unique<listener>(std::move(threads), net_limits{}, tls);
  const endpoint where = how.chosen.address();
  auto opened = ears->open(where.host, where.port);
  if (auto* failed = std::get_if<listen_failed>(&opened)) return start_failed{failed->sentence};
  port = std::get<std::uint16_t>(opened);
  lines->write(log_level::info, "listening",
               {{"address", where.host},
                {"port", std::int64_t{port}},
                {"tls", tls != nullptr},
                {"data", how.chosen.data},
                {"store", storage::shown(how.chosen.place_of_store())},
                {"threads", how.chosen.threads},
                {"clock", clock == nullptr ? "" : word(clock->basis())},
                {"role", word(role->role())}});
  warn_of_few_connections();
  return std::nullopt;
}

void server::parts::warn_of_few_connections() {
  const net_limits limits;
  const std::size_t room = connection_cap(limits.connections, limits.reserved_descriptors);
  if (room >= limits.connections) return;
  lines->write(log_level::warn, "the limit of open files allows few connections",
               {{"connections", static_cast<std::int64_t>(room)},
                {"wanted", static_cast<std::int64_t>(limits.connections)},
                {"why", "raise the limit to " +
                            std::to_string(limits.connections + limits.reserved_descriptors) +
                            " (ulimit -n, LimitNOFILE=); it may be raised while leaseholdd runs "
                            "(prlimit --nofile)"}});
}

std::variant<std::unique_ptr<server>, start_failed> server::start(invocation how,
                                                                  std::function<void()> wake) {
  auto p = std::make_unique<parts>();
  p->how = std::move(how);
  p->wake = std::move(wake);
  p->role = std::make_shared<active_role>(machine_clocks().boottime_ms);
  p->lines = std::make_shared<log>(log_level_from_word(p->how.chosen.log_level),
                                   log_form_from_word(p->how.chosen.log_format));
  p->chosen = std::make_shared<live_options>(p->how.chosen);
  auto made = std::unique_ptr<server>(new server(std::move(p)));
  parts& all = *made->parts_;
  if (auto failed = all.read_access()) return *failed;
  if (auto failed = all.read_tls()) return *failed;
  all.reads = std::make_shared<storage::read_pool>();
  if (all.is_shared()) {
    all.start_loops();
    if (auto failed = all.listen()) return *failed;
    all.keep_epoch();
    return made;
  }
  if (auto failed = all.open_store()) return *failed;
  all.start_loops();
  all.make_timers();
  if (auto failed = all.start_coordinator()) return *failed;
  all.role->serve_for_ever();
  all.serves = true;
  if (auto failed = all.listen()) return *failed;
  all.hand_over();
  return made;
}

}  // namespace leasehold::server
