#include "src/server.hpp"

#include <fmt/chrono.h>

#include <cstdlib>
#include <ctime>

#include "src/server_parts.hpp"

namespace leasehold::server {
namespace {

using protocol::reason;
using std::chrono::milliseconds;

constexpr milliseconds closing_limit{2'000};
constexpr std::chrono::seconds refusals_interval{60};

/// What a terminal shows as "leaseholdd: sentence" and a line end.
std::string_view sentence_of(std::string_view shown) {
  constexpr std::string_view name = "leaseholdd: ";
  if (shown.starts_with(name)) shown.remove_prefix(name.size());
  if (shown.ends_with('\n')) shown.remove_suffix(1);
  return shown;
}

}  // namespace

void server::parts::end_revoked_sockets() {
  for (std::size_t i = 0; i < apis.size(); ++i) {
    loops[i]->post([known = apis[i]] {
      if (const auto api = known.lock()) api->sockets.check_all();
    });
  }
}
reason server::parts::why_unready() const {
  if (draining) return reason::draining;
  return counters->store_failing.value() > 0 ? reason::store_unavailable : reason::none;
}

void server::parts::report_refusals() {
  const std::int64_t refused = ears->counters().connections_refused.load();
  const auto now = std::chrono::steady_clock::now();
  if (refused == refusals_told || now < refusals_told_at + refusals_interval) return;
  lines->write(log_level::warn, "connections were turned away",
               {{"count", refused - refusals_told},
                {"open", static_cast<std::int64_t>(ears->connections())}});
  refusals_told = refused;
  refusals_told_at = now;
}

void server::parts::report_failed_handshakes() {
  const net_counters& seen = ears->counters();
  const std::int64_t failed = seen.tls_failures.load();
  const auto now = std::chrono::steady_clock::now();
  if (failed == failures_told || now < failures_told_at + refusals_interval) return;
  lines->write(log_level::warn, "TLS handshakes failed",
               {{"count", failed - failures_told}, {"newest", seen.tls_failure.load()}});
  failures_told = failed;
  failures_told_at = now;
}

void server::parts::tell_certificate(const options& of) const {
  const auto now = tls->current();
  const std::int64_t expires_s = now->expires_s();
  const bool has_ended = now->has_expired();
  lines->write(
      has_ended ? log_level::warn : log_level::info,
      has_ended ? "the TLS certificate has expired" : "TLS certificate in use",
      {{"file", of.tls_certificate},
       {"expires", fmt::format("{:%FT%TZ}", fmt::gmtime(static_cast<std::time_t>(expires_s)))}});
}

/// Apart from the rest of a reload: a bad file must not keep a revoked principal connected.
void server::parts::reload_tls(const options& next) {
  if (tls == nullptr || !next.has_tls()) return;
  auto read = tls_context::read(tls_files_of(next));
  if (const auto* fault = std::get_if<tls_fault>(&read)) {
    lines->write(log_level::error, "TLS files not reloaded; the old ones stay",
                 {{"why", fault->sentence}});
    return;
  }
  tls->replace(std::get<std::shared_ptr<const tls_context>>(std::move(read)));
  tell_certificate(next);
}

void server::parts::end_at_once(int exit_code) const {
  lines->close();
  std::_Exit(exit_code);
}

server::server(std::unique_ptr<parts> made) : parts_(std::move(made)) {}
server::~server() { stop(); }

std::uint16_t server::port() const noexcept { return parts_->port; }

void server::reload() {
  parts& p = *parts_;
  auto loaded = load_options(p.how.arguments, p.how.variables);
  if (auto* bad = std::get_if<say_and_exit>(&loaded)) {
    p.lines->write(log_level::error, "options not reloaded; the old ones stay",
                   {{"why", sentence_of(bad->text)}});
    return;
  }
  options next = std::move(std::get<invocation>(loaded).chosen);
  p.reload_tls(next);
  auto read = read_principals(p.how.chosen.principals_file());
  if (auto* bad = std::get_if<principals_fault>(&read)) {
    p.lines->write(log_level::error, "principals not reloaded; the old ones stay",
                   {{"why", bad->sentence}});
    return;
  }
  if (std::get<principal_set>(read).entries.empty()) {
    p.lines->write(log_level::error, "principals not reloaded; the old ones stay",
                   {{"why", "The principals file " + p.how.chosen.principals_file().string() +
                                " names no principal, which would lock everybody out; leasehold "
                                "token add makes one."}});
    return;
  }
  p.lines->set_level(log_level_from_word(next.log_level));
  auto all = capped(std::move(std::get<principal_set>(read)), next);
  const auto count = static_cast<std::int64_t>(all.entries.size());
  p.principals->replace(std::move(all));
  p.end_revoked_sockets();
  if (p.coordinator) p.coordinator->change(actor_options_of(next));
  const std::string later = changed_until_restart(p.how.chosen, next);
  p.chosen->replace(std::move(next));
  p.lines->write(log_level::info, "reloaded", {{"principals", count}});
  if (!later.empty()) {
    p.lines->write(log_level::warn, "some changes wait for the next start", {{"keys", later}});
  }
}

std::optional<start_failed> server::look_after() {
  parts& p = *parts_;
  p.report_refusals();
  p.report_failed_handshakes();
  if (!p.serves && p.taken != 0) return p.activate();
  const std::lock_guard lock(p.trouble_mutex);
  return p.hopeless;
}

void server::drain() {
  parts& p = *parts_;
  if (p.draining.exchange(true)) return;
  // A standby has nothing to finish, and is not to begin.
  if (!p.serves) {
    if (p.keeper) p.keeper->stop();
    return;
  }
  // Closing the sockets takes its share of the time that the operator gave.
  const auto timeout = p.chosen->current()->drain_timeout;
  const std::int64_t closing = std::min<std::int64_t>(closing_limit.count(), timeout.ms / 2);
  p.drain_until = p.clock->now() + protocol::duration{timeout.ms - closing};
  p.lines->write(log_level::info, "draining",
                 {{"timeout_ms", p.chosen->current()->drain_timeout.ms}});
  p.coordinator->drain(p.drain_until);
  for (std::size_t i = 0; i < p.apis.size(); ++i) {
    p.loops[i]->post([known = p.apis[i]] {
      if (const auto api = known.lock()) api->sockets.drain_all();
    });
  }
}

bool server::drained() const {
  const auto live = [&](protocol::lease_state state) {
    return parts_->counters->leases[static_cast<std::size_t>(state)].value();
  };
  using enum protocol::lease_state;
  if (!parts_->serves || parts_->clock->now() >= parts_->drain_until) return true;
  // Whoever holds a lock keeps it across a start. The last job's lease has ended in its shard; its
  // worker's answer may still be on its way to the session's thread.
  const auto held = parts_->counters->locks_held.value();
  return live(offered) + live(acked) + live(active) - held <= 0 &&
         parts_->counters->frames_in_flight.value() <= 0;
}

void server::stop() {
  parts& p = *parts_;
  if (p.stopped) return;
  p.stopped = true;
  if (p.ears)
    p.ears->stop(protocol::close_code::draining, "The coordinator is shutting down.",
                 closing_limit);
  if (p.reads) p.reads->stop();
  std::size_t left = 0;
  for (std::size_t i = 0; i < p.loops.size(); ++i) {
    left += p.loops[i]->stop([&] {
      if (p.coordinator) p.coordinator->exit_thread(i);
      if (i < p.timers.size()) p.timers[i]->disarm();
    });
  }
  if (left > 0) {
    p.lines->write(log_level::error, "actors did not end",
                   {{"count", static_cast<std::int64_t>(left)}});
  }
  p.ears.reset();
  p.coordinator.reset();
  p.timers.clear();
  // What the store still says is posted to the loops, where nobody runs it any more.
  p.store.reset();
  // Only now, when nothing is written or answered under it any more.
  if (p.keeper) p.keeper->release();
  p.loops.clear();
  if (p.port != 0) p.lines->write(log_level::info, "stopped");
  p.lines->close();
}

void server::end_at_once(int exit_code) { parts_->end_at_once(exit_code); }

}  // namespace leasehold::server
