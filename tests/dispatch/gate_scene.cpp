#include "gate_scene.hpp"

#include <cstdlib>
#include <future>

#include "src/dispatcher_store.hpp"
#include "src/store/open_store.hpp"
#include "src/store/postgres_connection.hpp"

namespace leasehold::tests {

namespace {

constexpr protocol::generation attempt{7};

template <class T>
T expect(actors::store_result<T> got) {
  if (auto* fault = std::get_if<actors::store_error>(&got)) {
    ADD_FAILURE() << fault->sentence;
    // Nothing of such a test can go on.
    std::abort();
  }
  return std::move(std::get<T>(got));
}

storage::store_place place_of(const std::string& url) {
  auto place = storage::parse_store_url(url);
  return std::get<storage::store_place>(std::move(place));
}

/// Without the tables of the test before.
void empty_database() {
  auto session = expect(storage::postgres_connection::open({"postgresql://", "gates", {}}));
  const auto fault = session.execute("DROP SCHEMA IF EXISTS leasehold CASCADE");
  EXPECT_FALSE(fault) << fault->sentence;
}

}  // namespace

gate_scene::gate_scene() {
  const bool is_file = std::string(GetParam()) == "sqlite";
  if (!is_file) empty_database();
  url_ = is_file ? "sqlite:" + (kept_.path() / "store").string() : "postgresql://";
  clock_ = std::get<0>(server::system_clock::start(server::machine_clocks(), std::nullopt, {}));
  storage::store_options how;
  how.place = place_of(url_);
  how.now = [clock = clock_] { return clock->now(); };
  store_ = expect(storage::open_store(how));
  expect(
      store_->recover([](const auto&) {}, [](auto&&) {}, [](auto, const auto&) {}, [](auto&&) {}));
  // Something of the coordinator's clock stands in the log from here on.
  write({});
  tables_ = expect(server::open_dispatches(how.place, server::machine_clocks()));
}

gate_scene::~gate_scene() = default;

void gate_scene::write(std::vector<protocol::dispatch_change> changes) {
  actors::batch batch;
  batch.anchor = clock_->anchor();
  batch.dispatches = std::move(changes);
  std::promise<actors::store_result<actors::committed>> done;
  store_->commit(std::move(batch), [&](auto got) { done.set_value(std::move(got)); });
  expect(done.get_future().get());
}

void gate_scene::open(const protocol::lease_key& key, std::int64_t deadline_in_ms) {
  protocol::dispatch_change what;
  what.what = protocol::dispatch_change::kind::open;
  what.key = key;
  what.gen = attempt;
  what.at = what.cancel_requested_at = now();
  what.cancel_deadline = now() + protocol::duration{deadline_in_ms};
  write({what});
}

void gate_scene::open_many(int count) {
  for (int i = 0; i < count; ++i) open(raced_key(i));
}

void gate_scene::enrol(const protocol::lease_key& key, const protocol::process_handle& handle) {
  protocol::dispatch_change what;
  what.what = protocol::dispatch_change::kind::handle;
  what.key = key;
  what.gen = attempt;
  what.at = now();
  what.process = handle;
  write({what});
}

void gate_scene::open_process(const protocol::lease_key& key,
                              const protocol::process_handle& handle) {
  enrol(key, handle);
  // By every clock the deadline is past.
  open(key, -1'000);
  // What the coordinator's dispatcher says of a stream whose holder is gone.
  const auto seen = at(key);
  protocol::dispatch_claim claim{key, attempt,  seen.cancel_requested_at, seen.stage,
                                 {},  "stream", std::string(32, 'a')};
  std::promise<std::int64_t> version;
  tables_->claim({claim}, {}, [&](auto got) {
    const auto claims = expect(std::move(got));
    EXPECT_EQ(claims.at(0).why, protocol::reason::none);
    version.set_value(claims.at(0).record.version);
  });
  protocol::dispatch_report said{key,
                                 attempt,
                                 claim.owner,
                                 claim.token,
                                 version.get_future().get(),
                                 protocol::dispatch_result::controller_missing};
  std::promise<void> reported;
  tables_->report({said}, {}, [&](auto got) {
    EXPECT_EQ(expect(std::move(got)).at(0).why, protocol::reason::none);
    reported.set_value();
  });
  reported.get_future().get();
  EXPECT_EQ(at(key).stage, protocol::dispatch_stage::process);
}

void gate_scene::close(const protocol::lease_key& key) {
  protocol::dispatch_change what;
  what.what = protocol::dispatch_change::kind::close;
  what.key = key;
  what.at = now();
  write({what});
}

protocol::dispatch_record gate_scene::at(const protocol::lease_key& key) const {
  std::promise<std::optional<protocol::dispatch_record>> found;
  tables_->find(key, [&](auto got) { found.set_value(expect(std::move(got))); });
  const auto record = found.get_future().get();
  EXPECT_TRUE(record);
  return record.value_or(protocol::dispatch_record{});
}

std::vector<protocol::dispatch_event> gate_scene::events(const protocol::lease_key& key) const {
  std::promise<std::vector<protocol::dispatch_event>> found;
  tables_->events(key, 0, 64, [&](auto got) { found.set_value(expect(std::move(got))); });
  return found.get_future().get();
}

std::unique_ptr<e2e::program_run> gate_scene::dispatcher(
    const std::string& output, const std::vector<std::string>& more,
    const std::vector<std::string>& variables) const {
  std::vector<std::string> words{"dispatcher",    "--store",     url_,
                                 "--controllers", "process",     "--log-format",
                                 "json",          "--log-level", "trace"};
  words.insert(words.end(), more.begin(), more.end());
  return std::make_unique<e2e::program_run>(LEASEHOLDD, words, file(output), variables);
}

int gate_scene::dispatch_once(const std::string& output,
                              const std::vector<std::string>& more) const {
  auto words = more;
  words.emplace_back("--once");
  return dispatcher(output, words)->wait().value_or(-1);
}

}  // namespace leasehold::tests
