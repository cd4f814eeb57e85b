// A store whose calls are over when they return, so that a coordinator on a clock of the test's
// runs on a database of its own in the same order every time.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <utility>
#include <vector>

#include "leasehold/actors/store.hpp"

namespace leasehold::tests {

class waiting_store final : public actors::store {
 public:
  explicit waiting_store(std::unique_ptr<actors::store> real) : real_(std::move(real)) {}

  actors::store_result<actors::recovered_head> recover(
      const std::function<void(const actors::store_state&)>& on_state,
      const std::function<void(actors::checkpoint_entry&&)>& on_record,
      const std::function<void(protocol::policy_id, const protocol::policy&)>& on_policy,
      const std::function<void(actors::stored_batch&&)>& on_batch) override {
    return real_->recover(on_state, on_record, on_policy, on_batch);
  }
  void commit(actors::batch what,
              std::function<void(actors::store_result<actors::committed>)> done) override {
    wait<actors::committed>(done, [&](auto hear) { real_->commit(std::move(what), hear); });
  }
  void checkpoint(actors::checkpoint_slice slice,
                  std::function<void(actors::store_result<bool>)> done) override {
    wait<bool>(done, [&](auto hear) { real_->checkpoint(std::move(slice), hear); });
  }
  void read_grant(protocol::lease_key key, protocol::row_number newest,
                  std::function<void(actors::store_result<actors::stored_grant>)> done) override {
    wait<actors::stored_grant>(done,
                               [&](auto hear) { real_->read_grant(std::move(key), newest, hear); });
  }
  void find_row_before(
      protocol::instant at,
      std::function<void(actors::store_result<protocol::row_number>)> done) override {
    wait<protocol::row_number>(done, [&](auto hear) { real_->find_row_before(at, hear); });
  }
  void cut(protocol::row_number upto,
           std::function<void(actors::store_result<protocol::row_number>)> done) override {
    wait<protocol::row_number>(done, [&](auto hear) { real_->cut(upto, hear); });
  }
  actors::store_result<std::optional<protocol::policy>> find_policy(
      protocol::policy_id id) override {
    return real_->find_policy(id);
  }
  actors::store_result<std::vector<protocol::stored_row>> rows_of_lease(
      const protocol::lease_key& key, protocol::row_number newest, std::size_t limit) override {
    return real_->rows_of_lease(key, newest, limit);
  }
  actors::store_result<std::vector<protocol::stored_row>> rows_from(protocol::row_number from,
                                                                    std::size_t limit) override {
    return real_->rows_from(from, limit);
  }
  actors::store_result<std::vector<actors::stored_batch>> batches_from(protocol::row_number from,
                                                                       std::size_t limit) override {
    return real_->batches_from(from, limit);
  }
  actors::store_result<actors::log_head> head() override { return real_->head(); }

 private:
  template <class Said, class Ask>
  static void wait(const std::function<void(actors::store_result<Said>)>& done, const Ask& ask) {
    std::promise<actors::store_result<Said>> promise;
    ask([&promise](actors::store_result<Said> said) { promise.set_value(std::move(said)); });
    done(promise.get_future().get());
  }

  std::unique_ptr<actors::store> real_;
};

}  // namespace leasehold::tests
