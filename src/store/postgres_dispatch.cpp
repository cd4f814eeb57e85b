#include "src/store/postgres_dispatch.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/store/postgres_dispatch_rows.hpp"
#include "src/store/postgres_schema.hpp"
#include "src/store/read_pool.hpp"

namespace leasehold::storage {

namespace {

using actors::dispatch_claimed;
using actors::dispatch_reported;
using actors::store_error;
using actors::store_result;
using protocol::lease_key;
using protocol::reason;
using steady = std::chrono::steady_clock;

/// The calls that wait for the one thread.
constexpr std::size_t most_calls = 64;
/// How often a record that others change meanwhile is judged again.
constexpr int most_rounds = 4;
/// The coordinator's clock and the database's are tied together again after this.
constexpr std::chrono::seconds clock_interval{5};

store_error as_store_error(postgres_error&& fault) {
  return static_cast<store_error&&>(std::move(fault));
}

/// What comes of one request by the record as it was read: the answer, and what is to be written.
template <class Answer>
struct judged {
  Answer answer;
  std::optional<next_dispatch> next;
};

judged<dispatch_claimed> judge(const protocol::dispatch_claim& asked, const seen_dispatch& seen,
                               protocol::instant now, const protocol::dispatch_pace& pace) {
  judged<dispatch_claimed> out;
  auto record = seen.record;
  out.answer.why = protocol::claim_dispatch(record, asked, now, pace);
  if (out.answer.why == reason::none) {
    out.next = next_dispatch{record, seen.record.version, {}};
    if (asked.stage == protocol::dispatch_stage::process) out.answer.process = seen.process;
  } else {
    record.lease_token.clear();
  }
  out.answer.record = std::move(record);
  return out;
}

judged<dispatch_reported> judge_change(
    const seen_dispatch& seen,
    const std::function<reason(protocol::dispatch_record&, protocol::dispatch_event&)>& change) {
  judged<dispatch_reported> out;
  auto record = seen.record;
  protocol::dispatch_event event;
  out.answer.why = change(record, event);
  if (out.answer.why == reason::none) out.next = next_dispatch{record, seen.record.version, event};
  record.lease_token.clear();
  out.answer.record = std::move(record);
  return out;
}

/// An operator's, as a request like the others.
struct operation {
  lease_key key;
  protocol::dispatch_operation what;
};

class postgres_dispatches final : public actors::dispatch_store {
 public:
  explicit postgres_dispatches(postgres_dispatch_options how)
      : how_(std::move(how)), calls_(1, most_calls) {}

  store_result<protocol::instant> now() override {
    if (how_.now) return how_.now();
    const std::lock_guard lock(mutex_);
    if (!told_) return store_error{store_error::kind::io, "the database was not asked yet"};
    const auto passed = std::chrono::duration_cast<std::chrono::milliseconds>(steady::now() - at_);
    return *told_ + protocol::duration{passed.count()};
  }

  /// Connects and looks at the clock; on the caller's thread, before anything is asked.
  std::optional<store_error> begin(
      const std::function<std::optional<store_error>(postgres_connection&)>& check) {
    if (auto fault = connect()) return fault;
    if (auto fault = check(*db_)) return fault;
    auto told = time();
    if (auto* fault = std::get_if<store_error>(&told)) return *fault;
    return std::nullopt;
  }

  void page(actors::dispatch_query what, then<actors::dispatch_page> done) override {
    ask<actors::dispatch_page>(
        std::move(done), [this, what = std::move(what)]() -> store_result<actors::dispatch_page> {
          auto told = time();
          if (auto* fault = std::get_if<store_error>(&told)) return *fault;
          return read_dispatch_page(*db_, what, std::get<protocol::instant>(told));
        });
  }

  void claim(std::vector<protocol::dispatch_claim> asked, protocol::dispatch_pace pace,
             then<std::vector<dispatch_claimed>> done) override {
    ask_each<dispatch_claimed>(
        std::move(asked), std::move(done),
        [pace](const protocol::dispatch_claim& each, const seen_dispatch& seen,
               protocol::instant now) { return judge(each, seen, now, pace); });
  }

  void report(std::vector<protocol::dispatch_report> said, protocol::dispatch_pace pace,
              then<std::vector<dispatch_reported>> done) override {
    ask_each<dispatch_reported>(std::move(said), std::move(done),
                                [pace](const protocol::dispatch_report& each,
                                       const seen_dispatch& seen, protocol::instant now) {
                                  return judge_change(seen, [&](auto& record, auto& event) {
                                    return protocol::report_dispatch(record, each, now, pace,
                                                                     event);
                                  });
                                });
  }

  void operate(lease_key key, protocol::dispatch_operation what,
               then<dispatch_reported> done) override {
    ask_each<dispatch_reported>(
        std::vector{operation{std::move(key), what}},
        [done = std::move(done)](store_result<std::vector<dispatch_reported>> said) {
          if (auto* fault = std::get_if<store_error>(&said)) {
            done(*fault);
          } else {
            done(std::move(std::get<std::vector<dispatch_reported>>(said).front()));
          }
        },
        [](const operation& each, const seen_dispatch& seen, protocol::instant now) {
          return judge_change(seen, [&](auto& record, auto& event) {
            return protocol::operate_dispatch(record, each.what, now, event);
          });
        });
  }

  void find(lease_key key, then<std::optional<protocol::dispatch_record>> done) override {
    ask<std::optional<protocol::dispatch_record>>(
        std::move(done), [this, key = std::move(key)] { return read_dispatch(*db_, key); });
  }

  void events(lease_key key, std::int64_t after, std::size_t limit,
              then<std::vector<protocol::dispatch_event>> done) override {
    ask<std::vector<protocol::dispatch_event>>(
        std::move(done), [this, key = std::move(key), after, limit] {
          return read_dispatch_events(*db_, key, after, limit);
        });
  }

  void exited(protocol::instant since, std::size_t limit,
              then<std::vector<protocol::dispatch_record>> done) override {
    ask<std::vector<protocol::dispatch_record>>(std::move(done), [this, since, limit] {
      return read_exited_dispatches(*db_, since, limit);
    });
  }

  void count(then<actors::dispatch_counts> done) override {
    ask<actors::dispatch_counts>(std::move(done), [this] { return count_dispatches(*db_); });
  }

 private:
  template <class Said>
  void ask(then<Said> done, std::function<store_result<Said>()> call) {
    // `done` is needed here, too, when the call does not find a place.
    const auto say = std::make_shared<then<Said>>(std::move(done));
    const bool taken = calls_.submit([this, say, call = std::move(call)] {
      if (auto fault = connect()) {
        (*say)(*fault);
      } else {
        (*say)(call());
      }
    });
    if (!taken) (*say)(actors::too_many_calls());
  }

  template <class Answer, class Asked, class Judge>
  void ask_each(std::vector<Asked> asked, then<std::vector<Answer>> done, Judge by) {
    if (asked.size() > actors::most_dispatches) {
      done(actors::too_many_dispatches());
      return;
    }
    ask<std::vector<Answer>>(std::move(done), [this, asked = std::move(asked), by] {
      return change_all<Answer>(asked, by);
    });
  }

  /// Reads, judges and writes what is not yet answered, until nothing is left that others changed
  /// meanwhile.
  template <class Answer, class Asked, class Judge>
  store_result<std::vector<Answer>> change_all(const std::vector<Asked>& asked, const Judge& by) {
    std::vector<Answer> answers(asked.size());
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < asked.size(); ++i) open.push_back(i);
    for (int round = 0; round < most_rounds && !open.empty(); ++round) {
      auto left = change_some<Answer>(asked, open, by, answers);
      if (auto* fault = std::get_if<store_error>(&left)) return *fault;
      open = std::move(std::get<std::vector<std::size_t>>(left));
    }
    for (const std::size_t i : open) answers[i] = unavailable<Answer>();
    return answers;
  }

  /// Yields which of `open` are to be judged again.
  template <class Answer, class Asked, class Judge>
  store_result<std::vector<std::size_t>> change_some(const std::vector<Asked>& asked,
                                                     const std::vector<std::size_t>& open,
                                                     const Judge& by,
                                                     std::vector<Answer>& answers) {
    std::vector<lease_key> keys;
    for (const std::size_t i : open) keys.push_back(asked[i].key);
    auto told = time();
    if (auto* fault = std::get_if<store_error>(&told)) return *fault;
    auto read = look_for_dispatches(*db_, keys);
    if (auto* fault = std::get_if<postgres_error>(&read)) return as_store_error(std::move(*fault));
    std::map<lease_key, seen_dispatch> seen;
    for (auto& each : std::get<std::vector<seen_dispatch>>(read)) {
      seen.emplace(each.record.key, std::move(each));
    }
    std::map<lease_key, next_dispatch> next;
    for (const std::size_t i : open) {
      const auto found = seen.find(asked[i].key);
      if (found == seen.end()) {
        answers[i] = {};
        answers[i].why = reason::unknown_dispatch;
      } else if (found->second.is_damaged) {
        answers[i] = unavailable<Answer>();
      } else {
        auto one = by(asked[i], found->second, std::get<protocol::instant>(told));
        answers[i] = std::move(one.answer);
        if (!one.next) continue;
        // A second request of one call is judged by what the first made of the record.
        found->second.record = one.next->record;
        next.insert_or_assign(asked[i].key, std::move(*one.next));
      }
    }
    return write_and_find_lost(asked, open, next);
  }

  template <class Asked>
  store_result<std::vector<std::size_t>> write_and_find_lost(
      const std::vector<Asked>& asked, const std::vector<std::size_t>& open,
      std::map<lease_key, next_dispatch>& next) {
    std::vector<std::size_t> lost;
    if (next.empty()) return lost;
    std::vector<next_dispatch> rows;
    for (const auto& [key, one] : next) rows.push_back(one);
    auto written = write_dispatches(*db_, rows);
    if (auto* fault = std::get_if<postgres_error>(&written)) {
      // Nothing of it was done, and it may pass.
      if (fault->is_lost || !may_pass(fault->state)) return as_store_error(std::move(*fault));
      written = std::vector<lease_key>{};
    }
    for (const auto& key : std::get<std::vector<lease_key>>(written)) next.erase(key);
    for (const std::size_t i : open) {
      if (next.contains(asked[i].key)) lost.push_back(i);
    }
    return lost;
  }

  template <class Answer>
  static Answer unavailable() {
    Answer answer;
    answer.why = reason::store_unavailable;
    return answer;
  }

  std::optional<store_error> connect() {
    if (db_ && db_->usable()) return std::nullopt;
    db_.reset();
    auto opened = postgres_connection::open(how_.access);
    if (auto* fault = std::get_if<store_error>(&opened)) return *fault;
    db_ = std::move(std::get<postgres_connection>(opened));
    return std::nullopt;
  }

  /// The coordinator's own clock, which is tied to the database's from time to time; or what the
  /// database's says about it.
  store_result<protocol::instant> time() {
    if (how_.now) {
      const auto own = how_.now();
      if (how_.epoch == 0 || (tied_ && steady::now() - at_ < clock_interval)) return own;
      if (auto fault = write_dispatch_clock(*db_, how_.epoch, own)) {
        return as_store_error(std::move(*fault));
      }
      tied_ = true;
      at_ = steady::now();
      return own;
    }
    auto read = read_dispatch_clock(*db_);
    if (auto* fault = std::get_if<postgres_error>(&read)) return as_store_error(std::move(*fault));
    const std::lock_guard lock(mutex_);
    told_ = std::get<protocol::instant>(read);
    at_ = steady::now();
    return *told_;
  }

  postgres_dispatch_options how_;
  std::optional<postgres_connection> db_;
  bool tied_ = false;
  std::mutex mutex_;
  std::optional<protocol::instant> told_;
  steady::time_point at_;
  read_pool calls_;  ///< ends before what it uses
};

}  // namespace

std::unique_ptr<actors::dispatch_store> make_postgres_dispatches(postgres_dispatch_options how) {
  return std::make_unique<postgres_dispatches>(std::move(how));
}

store_result<std::unique_ptr<actors::dispatch_store>> open_postgres_dispatches(
    postgres_dispatch_options how) {
  auto made = std::make_unique<postgres_dispatches>(std::move(how));
  auto fault = made->begin([](postgres_connection& db) -> std::optional<store_error> {
    if (auto refused = prepare_schema(db, std::nullopt)) return refused;
    auto facts = read_facts(db);
    if (auto* failed = std::get_if<store_error>(&facts)) return *failed;
    if (!std::get<store_facts>(facts).is_backup) return std::nullopt;
    return store_error{store_error::kind::foreign,
                       db.place() +
                           " holds a copy that was not served yet; start leaseholdd "
                           "--restored-backup on it first, or name another database"};
  });
  if (fault) return *fault;
  return made;
}

}  // namespace leasehold::storage
