#include "src/store/log_store.hpp"

#include <utility>

#include "src/store/recovery.hpp"
#include "src/store/stored_grant.hpp"

namespace leasehold::storage {

using actors::store_error;
using actors::store_result;
using actors::stored_batch;
using protocol::row_number;

log_store::log_store(open_reader opens, std::size_t readers, store_facts facts,
                     actors::log_head head, std::function<void(std::string)> on_damage)
    : opens_(std::move(opens)),
      facts_(std::move(facts)),
      head_at_start_(head),
      on_damage_(std::move(on_damage)),
      readers_(opens_, readers) {}

void log_store::end_reads() {
  check_.reset();
  lookups_.stop();
}

store_result<actors::recovered_head> log_store::recover(
    const std::function<void(const actors::store_state&)>& on_state,
    const std::function<void(actors::checkpoint_entry&&)>& on_record,
    const std::function<void(protocol::policy_id, const protocol::policy&)>& on_policy,
    const std::function<void(stored_batch&&)>& on_batch) {
  using result = store_result<actors::recovered_head>;
  const recovery_listener to{on_state, on_record, on_policy, on_batch};
  auto done = readers_.with<result>(
      [&](log_reader& from) { return recover_store(from, facts_, head_at_start_, to); });
  if (std::holds_alternative<actors::recovered_head>(done) && on_damage_) {
    check_.emplace(opens_, head_at_start_.last_row, on_damage_);
  }
  return done;
}

template <class Result>
void log_store::look_up(std::function<void(Result)> done, std::function<Result(log_reader&)> read) {
  // `done` is needed here, too, when the read does not find a place.
  const auto say = std::make_shared<std::function<void(Result)>>(std::move(done));
  const bool taken =
      lookups_.submit([this, say, read = std::move(read)] { (*say)(readers_.with<Result>(read)); });
  if (!taken) (*say)(store_error{store_error::kind::busy, "too many reads of the store wait"});
}

void log_store::read_grant(protocol::lease_key key, row_number newest,
                           std::function<void(store_result<actors::stored_grant>)> done) {
  look_up<store_result<actors::stored_grant>>(std::move(done),
                                              [key = std::move(key), newest](log_reader& from) {
                                                return storage::read_grant(from, key, newest);
                                              });
}

void log_store::read_requests(
    protocol::lease_key key, row_number newest, protocol::generation gen, protocol::instant since,
    std::function<void(store_result<std::vector<protocol::past_request>>)> done) {
  look_up<store_result<std::vector<protocol::past_request>>>(
      std::move(done), [key = std::move(key), newest, gen, since](log_reader& from) {
        return storage::read_requests(from, key, newest, gen, since);
      });
}

void log_store::find_row_before(protocol::instant at,
                                std::function<void(store_result<row_number>)> done) {
  look_up<store_result<row_number>>(std::move(done),
                                    [at](log_reader& from) { return from.row_before(at); });
}

store_result<std::optional<protocol::policy>> log_store::find_policy(protocol::policy_id id) {
  using result = store_result<std::optional<protocol::policy>>;
  return readers_.with<result>([&](log_reader& from) { return from.find_policy(id); });
}

store_result<std::vector<protocol::stored_row>> log_store::rows_of_lease(
    const protocol::lease_key& key, row_number newest, std::size_t limit) {
  using result = store_result<std::vector<protocol::stored_row>>;
  return readers_.with<result>(
      [&](log_reader& from) { return from.rows_of_lease(key, newest, limit); });
}

store_result<std::vector<protocol::stored_row>> log_store::rows_from(row_number from,
                                                                     std::size_t limit) {
  using result = store_result<std::vector<protocol::stored_row>>;
  return readers_.with<result>([&](log_reader& reader) { return reader.rows_from(from, limit); });
}

store_result<std::vector<stored_batch>> log_store::batches_from(row_number from,
                                                                std::size_t limit) {
  using result = store_result<std::vector<stored_batch>>;
  return readers_.with<result>(
      [&](log_reader& reader) { return reader.batches_from(from, limit); });
}

}  // namespace leasehold::storage
