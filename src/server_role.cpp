// leaseholdd on a store that several coordinators may use: a standby until the epoch is its own,
// then the active one, and nothing at all the moment that it has lost it.
#include <thread>

#include "src/next_life.hpp"
#include "src/postgres_epoch_store.hpp"
#include "src/request_ids.hpp"
#include "src/server_parts.hpp"
#include "src/store/postgres_store.hpp"
#include "src/watched_store.hpp"

namespace leasehold::server {
namespace {

using actors::store_error;

constexpr std::chrono::seconds trouble_interval{30};
constexpr std::chrono::seconds pause_after_failure{1};
/// How far this machine's wall clock may be behind that of the one which served before.
constexpr protocol::duration clocks_apart{60'000};

const storage::postgres_place* shared_place(const storage::store_place& place) {
  return std::get_if<storage::postgres_place>(&place);
}

/// No machine reaches another one there.
bool is_every_address(const endpoint& where) {
  return where.host == "0.0.0.0" || where.host == "::";
}

std::string text_of(const endpoint& where) {
  const bool v6 = where.host.find(':') != std::string::npos;
  return (v6 ? '[' + where.host + ']' : where.host) + ':' + std::to_string(where.port);
}

/// Whether another try may end otherwise.
bool may_pass(store_error::kind what) {
  switch (what) {
    case store_error::kind::busy:
    case store_error::kind::full:
    case store_error::kind::io:
    case store_error::kind::taken:
    case store_error::kind::deposed:
      return true;
    case store_error::kind::corrupt:
    case store_error::kind::foreign:
    case store_error::kind::fatal:
      return false;
  }
  return false;
}

}  // namespace

bool server::parts::is_shared() const {
  return shared_place(how.chosen.place_of_store()) != nullptr;
}

std::string server::parts::own_address() const {
  if (!how.chosen.advertise.empty()) return how.chosen.advertise;
  const endpoint where{how.chosen.address().host, port};
  return is_every_address(where) ? std::string() : text_of(where);
}

void server::parts::keep_epoch() {
  const auto place = how.chosen.place_of_store();
  const auto term = how.chosen.epoch_term;
  holder = holder_name(random_hex(32), term);
  if (own_address().empty()) {
    lines->write(log_level::warn,
                 "a standby cannot tell clients where this coordinator is: set advertise",
                 {{"listen", how.chosen.listen}});
  }
  epoch_keeper_options o;
  o.mine = {holder, own_address(), term};
  o.store = std::make_unique<postgres_epoch_store>(shared_place(place)->url, o.mine);
  o.boottime_ms = machine_clocks().boottime_ms;
  o.role = role;
  o.on_taken = [this](std::int64_t epoch, bool over) { on_taken(epoch, over); };
  o.on_deposed = [this](const deposed& why) { begin_again(why); };
  o.on_watched = [this](const epoch_row& row) {
    lines->write(log_level::info, "standby: another coordinator is active",
                 {{"active", row.by.active}, {"epoch", row.epoch}, {"term_ms", row.by.term.ms}});
  };
  o.on_trouble = [this](const store_error* why) { on_trouble(why); };
  keeper = std::make_unique<epoch_keeper>(std::move(o));
  keeper->start();
}

void server::parts::on_taken(std::int64_t epoch, bool over) {
  lines->write(log_level::info,
               over ? "the epoch is taken over; recovering" : "the epoch is taken; recovering",
               {{"epoch", epoch}});
  taken = epoch;
  if (wake) wake();
}

void server::parts::on_trouble(const store_error* why) {
  const auto now = std::chrono::steady_clock::now();
  const std::lock_guard lock(trouble_mutex);
  if (why == nullptr) {
    lines->write(log_level::info, "the store answers this standby again");
    trouble_told_at = {};
    return;
  }
  if (!may_pass(why->what)) {
    hopeless = start_failed{why->sentence};
    if (wake) wake();
  } else if (trouble_told_at == std::chrono::steady_clock::time_point{} ||
             now >= trouble_told_at + trouble_interval) {
    trouble_told_at = now;
    lines->write(log_level::warn, "the store does not answer this standby, which tries on",
                 {{"why", why->sentence}});
  }
}

std::optional<start_failed> server::parts::open_shared_store() {
  const auto place = how.chosen.place_of_store();
  storage::postgres_options o;
  o.access.url = shared_place(place)->url;
  o.access.owner = holder;
  o.epoch = taken;
  o.restored_backup = how.restored_backup;
  o.on_damage = [this](const std::string& sentence) {
    counters->store_damaged.set(1);
    lines->write(log_level::error, "the store is damaged", {{"why", sentence}});
  };
  o.on_unsafe = [this](const std::string& sentence) {
    lines->write(log_level::warn, "the database may lose what it has confirmed",
                 {{"why", sentence}});
  };
  o.now = [this] { return clock->now(); };
  auto opened = storage::open_postgres_store(o);
  if (auto* fault = std::get_if<store_error>(&opened)) {
    if (fault->what == store_error::kind::deposed) keeper->depose(fault->sentence);
    if (!may_pass(fault->what)) return start_failed{fault->sentence};
    // Another coordinator may have more luck meanwhile.
    keeper->release();
    std::this_thread::sleep_for(pause_after_failure);
    begin_again({fault->sentence, taken});
  }
  store = std::make_shared<watched_store>(
      std::move(std::get<std::unique_ptr<actors::store>>(opened)),
      [this](const std::string& sentence) { keeper->depose(sentence); });
  return start_clock(clocks_apart);
}

std::optional<start_failed> server::parts::activate() {
  const auto began = std::chrono::steady_clock::now();
  if (auto failed = open_shared_store()) return failed;
  make_timers();
  if (auto failed = start_coordinator()) return failed;
  hand_over();
  serves = true;
  role->serve();
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - began);
  lines->write(log_level::info, "active",
               {{"epoch", taken.load()},
                {"clock", word(clock->basis())},
                {"recovered_in_ms", std::int64_t{took.count()}}});
  return std::nullopt;
}

/// Nothing of this life goes on: no timer, no commit, no answer. A process that was told to end
/// ends; any other becomes a standby.
void server::parts::begin_again(const deposed& why) {
  const bool ends = draining;
  lines->write(
      log_level::error,
      ends ? "deposed while it was shutting down; ends" : "deposed; begins again as a standby",
      {{"why", why.sentence}, {"epoch", why.epoch}});
  lines->close();
  if (!ends) {
    const endpoint asked = how.chosen.address();
    const std::string listen = asked.port == 0 ? text_of({asked.host, port}) : std::string();
    begin_next_life(next_arguments(how.arguments, listen));
  }
  std::_Exit(ends ? EXIT_SUCCESS : EXIT_FAILURE);
}

}  // namespace leasehold::server
