#include "src/store/sqlite_dispatch.hpp"

#include <utility>

#include "src/store/sqlite_dispatch_rows.hpp"

namespace leasehold::storage {

using actors::dispatch_claimed;
using actors::dispatch_reported;
using actors::store_error;
using actors::store_result;

template <class Said>
void sqlite_dispatch_store::read_for(then<Said> done,
                                     std::function<store_result<Said>(connection&)> query) {
  // `done` is needed here, too, when the read does not find a place.
  const auto say = std::make_shared<then<Said>>(std::move(done));
  const bool taken = read([say, query = std::move(query)](store_result<connection*> from) {
    if (auto* fault = std::get_if<store_error>(&from)) {
      (*say)(*fault);
    } else {
      (*say)(query(*std::get<connection*>(from)));
    }
  });
  if (!taken) (*say)(actors::too_many_calls());
}

template <class Answer, class Asked, class Step>
void sqlite_dispatch_store::write_each(std::vector<Asked> asked, then<std::vector<Answer>> done,
                                       Step step) {
  if (asked.size() > actors::most_dispatches) {
    done(actors::too_many_dispatches());
    return;
  }
  const auto say = std::make_shared<then<std::vector<Answer>>>(std::move(done));
  const auto answers = std::make_shared<std::vector<Answer>>();
  dispatch_turn turn;
  turn.act = [this, asked = std::move(asked), answers,
              step](actors::dispatch_rows& rows) -> std::optional<store_error> {
    auto time = now();
    if (auto* fault = std::get_if<store_error>(&time)) return *fault;
    for (const Asked& each : asked) {
      auto said = step(rows, each, std::get<protocol::instant>(time));
      if (auto* fault = std::get_if<store_error>(&said)) return *fault;
      answers->push_back(std::move(std::get<Answer>(said)));
    }
    return std::nullopt;
  };
  turn.answer = [say, answers](const std::optional<store_error>& fault) {
    if (fault) {
      (*say)(*fault);
    } else {
      (*say)(std::move(*answers));
    }
  };
  if (!write(std::move(turn))) (*say)(actors::too_many_calls());
}

void sqlite_dispatch_store::page(actors::dispatch_query what, then<actors::dispatch_page> done) {
  read_for<actors::dispatch_page>(
      std::move(done),
      [this, what = std::move(what)](connection& from) -> store_result<actors::dispatch_page> {
        auto time = now();
        if (auto* fault = std::get_if<store_error>(&time)) return *fault;
        return read_dispatch_page(from, what, std::get<protocol::instant>(time));
      });
}

void sqlite_dispatch_store::claim(std::vector<protocol::dispatch_claim> asked,
                                  protocol::dispatch_pace pace,
                                  then<std::vector<dispatch_claimed>> done) {
  write_each(std::move(asked), std::move(done),
             [pace](actors::dispatch_rows& rows, const protocol::dispatch_claim& each,
                    protocol::instant now) { return actors::claim_in(rows, each, now, pace); });
}

void sqlite_dispatch_store::report(std::vector<protocol::dispatch_report> said,
                                   protocol::dispatch_pace pace,
                                   then<std::vector<dispatch_reported>> done) {
  write_each(std::move(said), std::move(done),
             [pace](actors::dispatch_rows& rows, const protocol::dispatch_report& each,
                    protocol::instant now) { return actors::report_in(rows, each, now, pace); });
}

void sqlite_dispatch_store::operate(protocol::lease_key key, protocol::dispatch_operation what,
                                    then<dispatch_reported> done) {
  write_each<dispatch_reported>(
      std::vector{std::move(key)},
      [done = std::move(done)](store_result<std::vector<dispatch_reported>> said) {
        if (auto* fault = std::get_if<store_error>(&said)) {
          done(*fault);
        } else {
          done(std::move(std::get<std::vector<dispatch_reported>>(said).front()));
        }
      },
      [what](actors::dispatch_rows& rows, const protocol::lease_key& each, protocol::instant now) {
        return actors::operate_in(rows, each, what, now);
      });
}

void sqlite_dispatch_store::find(protocol::lease_key key,
                                 then<std::optional<protocol::dispatch_record>> done) {
  read_for<std::optional<protocol::dispatch_record>>(
      std::move(done),
      [key = std::move(key)](connection& from) { return read_dispatch(from, key); });
}

void sqlite_dispatch_store::events(protocol::lease_key key, std::int64_t after, std::size_t limit,
                                   then<std::vector<protocol::dispatch_event>> done) {
  read_for<std::vector<protocol::dispatch_event>>(
      std::move(done), [key = std::move(key), after, limit](connection& from) {
        return read_dispatch_events(from, key, after, limit);
      });
}

void sqlite_dispatch_store::exited(protocol::instant since, std::size_t limit,
                                   then<std::vector<protocol::dispatch_record>> done) {
  read_for<std::vector<protocol::dispatch_record>>(
      std::move(done),
      [since, limit](connection& from) { return read_exited_dispatches(from, since, limit); });
}

void sqlite_dispatch_store::count(then<actors::dispatch_counts> done) {
  read_for<actors::dispatch_counts>(std::move(done),
                                    [](connection& from) { return count_dispatches(from); });
}

}  // namespace leasehold::storage
