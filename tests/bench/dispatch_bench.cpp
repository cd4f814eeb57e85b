#include "dispatch_bench.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <csignal>
#include <cstdint>
#include <functional>
#include <future>
#include <iostream>
#include <mutex>
#include <optional>

#include "figures.hpp"
#include "leasehold/protocol/record_image.hpp"
#include "src/store/open_dispatches.hpp"
#include "src/store/open_store.hpp"
#include "support/temporary_directory.hpp"
#include "tools/terminal.hpp"

namespace leasehold::bench {
namespace {

using protocol::reason;

constexpr std::int64_t begun_ms = 1'700'000'000'000;

protocol::lease_key key_of(std::size_t job) {
  return {protocol::tenant_id("bench"), protocol::lease_id("job-" + std::to_string(job))};
}

/// A batch of renews as full load makes them.
actors::batch renews(std::size_t count) {
  protocol::stored_row row;
  row.at.ms = begun_ms;
  row.ingress_at = row.at;
  row.input.kind = protocol::event_kind::renew;
  row.input.gen.value = 1;
  row.input.from = protocol::holder("w/000102030405060708090a0b0c0d0e0f");
  row.has_input = true;
  row.answer.decision = protocol::decision::accepted;
  row.answer.reason = reason::renewed;
  actors::batch made;
  for (std::size_t i = 0; i < count; ++i) {
    row.key = key_of(i);
    row.input.lease = row.key.lease;
    row.input.seq.value = static_cast<std::int64_t>(i) + 1;
    made.groups.push_back(protocol::encode_row(row));
  }
  made.rows = static_cast<std::int64_t>(count);
  made.anchor = {"bench", 1, begun_ms, {begun_ms}};
  return made;
}

/// Commits until it is killed, and says through `ready` that it has begun.
[[noreturn]] void commit_for_ever(const storage::store_options& where, const dispatch_options& how,
                                  int ready) {
  auto opened = storage::open_store(where);
  auto* store = std::get_if<std::unique_ptr<actors::store>>(&opened);
  if (store == nullptr) {
    std::cerr << "leasehold_bench: " << std::get<actors::store_error>(opened).sentence << '\n';
    ::_exit(1);
  }
  const auto load = renews(how.batch);
  const auto wait_for = [&](actors::batch what) {
    std::promise<bool> done;
    (*store)->commit(std::move(what), [&done](const auto& said) {
      done.set_value(std::holds_alternative<actors::committed>(said));
    });
    return done.get_future().get();
  };
  for (std::size_t at = 0; at < how.claims; at += 64) {
    actors::batch opening;
    for (std::size_t i = at; i < std::min(at + 64, how.claims); ++i) {
      protocol::dispatch_change change;
      change.key = key_of(i);
      change.gen.value = 1;
      change.at.ms = begun_ms;
      change.cancel_requested_at = change.at;
      change.cancel_deadline = change.at;
      opening.dispatches.push_back(change);
    }
    if (!wait_for(std::move(opening))) ::_exit(1);
  }
  // The writer takes the next commit while its callback asks for the one after.
  std::function<void(const actors::store_result<actors::committed>&)> again =
      [&](const auto& said) {
        if (!std::holds_alternative<actors::committed>(said)) ::_exit(1);
        (*store)->commit(load, again);
      };
  (*store)->commit(load, again);
  (*store)->commit(load, again);
  [[maybe_unused]] const auto told = ::write(ready, "x", 1);
  while (true) ::pause();
}

/// Asks, and how long the answer took.
template <class Answer, class Ask>
std::optional<Answer> timed(std::vector<std::uint32_t>& all_us, const Ask& ask) {
  std::promise<actors::store_result<std::vector<Answer>>> promise;
  auto answer = promise.get_future();
  const auto begin = steady::now();
  ask([&promise](actors::store_result<std::vector<Answer>> said) {
    promise.set_value(std::move(said));
  });
  auto said = answer.get();
  all_us.push_back(static_cast<std::uint32_t>(seconds_since(begin) * 1e6));
  if (auto* fault = std::get_if<actors::store_error>(&said)) {
    std::cerr << "leasehold_bench: " << fault->sentence << '\n';
    return std::nullopt;
  }
  return std::move(std::get<std::vector<Answer>>(said).front());
}

struct dispatch_figures {
  std::vector<std::uint32_t> claims_us;
  std::vector<std::uint32_t> results_us;
  bool whole = true;  ///< every one was made
};

dispatch_figures claim_all(actors::dispatch_store& from, const dispatch_options& how) {
  dispatch_figures out;
  tools::progress_bar bar("claiming", static_cast<std::int64_t>(how.claims));
  for (std::size_t i = 0; i < how.claims && out.whole; ++i) {
    const protocol::dispatch_claim asked{
        key_of(i), {1},     {begun_ms},          protocol::dispatch_stage::stream,
        "",        "bench", std::string(32, 'b')};
    const auto claimed = timed<actors::dispatch_claimed>(
        out.claims_us, [&](auto hear) { from.claim({asked}, {}, std::move(hear)); });
    out.whole = claimed && claimed->why == reason::none;
    if (!out.whole) break;
    const protocol::dispatch_report said{asked.key,
                                         asked.gen,
                                         asked.owner,
                                         asked.token,
                                         claimed->record.version,
                                         protocol::dispatch_result::termination_requested};
    const auto reported = timed<actors::dispatch_reported>(
        out.results_us, [&](auto hear) { from.report({said}, {}, std::move(hear)); });
    out.whole = reported && reported->why == reason::none;
    bar.show(static_cast<std::int64_t>(i));
  }
  bar.finish();
  return out;
}

int print(const dispatch_options& how, const dispatch_figures& found) {
  const latency_figures claims(found.claims_us);
  const latency_figures results(found.results_us);
  if (how.json) {
    const auto figures = [](const latency_figures& of) {
      return boost::json::object{{"p50_ms", of.at(0.5)}, {"p99_ms", of.at(0.99)}};
    };
    std::cout << boost::json::serialize(boost::json::object{{"claims", claims.count()},
                                                            {"claim", figures(claims)},
                                                            {"result", figures(results)}})
              << '\n';
  } else {
    tools::table all({"", "p50 ms", "p99 ms", "longest ms"});
    all.add(
        {"claim", number(claims.at(0.5), 2), number(claims.at(0.99), 2), number(claims.at(1), 2)});
    all.add({"result", number(results.at(0.5), 2), number(results.at(0.99), 2),
             number(results.at(1), 2)});
    std::cout << all.text();
  }
  if (!found.whole) std::cerr << "leasehold_bench: not every dispatch could be claimed\n";
  if (claims.at(0.99) > how.most_p99_ms) {
    std::cerr << "leasehold_bench: p99 of a claim is above " << number(how.most_p99_ms) << " ms\n";
  }
  return found.whole && claims.at(0.99) <= how.most_p99_ms ? 0 : 1;
}

/// A child that commits, and its end.
class committing_process {
 public:
  committing_process(const storage::store_options& where, const dispatch_options& how) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) return;
    child_ = ::fork();
    if (child_ == 0) commit_for_ever(where, how, ends[1]);
    ::close(ends[1]);
    char byte = 0;
    is_ready_ = ::read(ends[0], &byte, 1) == 1;
    ::close(ends[0]);
  }
  ~committing_process() {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  committing_process(const committing_process&) = delete;
  committing_process& operator=(const committing_process&) = delete;
  [[nodiscard]] bool is_ready() const { return is_ready_; }

 private:
  pid_t child_ = -1;
  bool is_ready_ = false;
};

}  // namespace

int measure_dispatches(const dispatch_options& how) {
  const tests::temporary_directory directory;
  storage::store_options where;
  where.place = storage::sqlite_place{directory.path() / "store"};
  if (!how.store.empty()) {
    auto read = storage::parse_store_url(how.store);
    if (const auto* wrong = std::get_if<storage::bad_store_url>(&read)) {
      std::cerr << "leasehold_bench: " << wrong->sentence << '\n';
      return 2;
    }
    where.place = std::get<storage::store_place>(read);
  }
  where.now = [] { return protocol::instant{begun_ms}; };
  const committing_process load(where, how);
  if (!load.is_ready()) return 1;
  auto opened = storage::open_dispatches(
      {where.place, [](const actors::clock_anchor&) { return protocol::instant{begun_ms}; }});
  if (const auto* fault = std::get_if<actors::store_error>(&opened)) {
    std::cerr << "leasehold_bench: " << fault->sentence << '\n';
    return 1;
  }
  return print(how, claim_all(*std::get<std::unique_ptr<actors::dispatch_store>>(opened), how));
}

}  // namespace leasehold::bench
