// A store in front of another: every call goes on to the one behind. Who derives from it overrides
// what it is about.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "leasehold/actors/store.hpp"

namespace leasehold::actors {

class forwarding_store : public store {
 public:
  explicit forwarding_store(std::unique_ptr<store> behind) : behind_(std::move(behind)) {}

  store_result<recovered_head> recover(
      const std::function<void(const store_state&)>& on_state,
      const std::function<void(checkpoint_entry&&)>& on_record,
      const std::function<void(protocol::policy_id, const protocol::policy&)>& on_policy,
      const std::function<void(stored_batch&&)>& on_batch) override {
    return behind_->recover(on_state, on_record, on_policy, on_batch);
  }
  void commit(batch what, std::function<void(store_result<committed>)> done) override {
    behind_->commit(std::move(what), std::move(done));
  }
  void checkpoint(checkpoint_slice slice, std::function<void(store_result<bool>)> done) override {
    behind_->checkpoint(std::move(slice), std::move(done));
  }
  void read_grant(protocol::lease_key key, protocol::row_number newest,
                  std::function<void(store_result<stored_grant>)> done) override {
    behind_->read_grant(std::move(key), newest, std::move(done));
  }
  void read_requests(
      protocol::lease_key key, protocol::row_number newest, protocol::generation gen,
      protocol::instant since,
      std::function<void(store_result<std::vector<protocol::past_request>>)> done) override {
    behind_->read_requests(std::move(key), newest, gen, since, std::move(done));
  }
  void find_row_before(protocol::instant at,
                       std::function<void(store_result<protocol::row_number>)> done) override {
    behind_->find_row_before(at, std::move(done));
  }
  void cut(protocol::row_number upto,
           std::function<void(store_result<protocol::row_number>)> done) override {
    behind_->cut(upto, std::move(done));
  }
  store_result<std::optional<protocol::policy>> find_policy(protocol::policy_id id) override {
    return behind_->find_policy(id);
  }
  store_result<std::vector<protocol::stored_row>> rows_of_lease(const protocol::lease_key& key,
                                                                protocol::row_number newest,
                                                                std::size_t limit) override {
    return behind_->rows_of_lease(key, newest, limit);
  }
  store_result<std::vector<protocol::stored_row>> rows_from(protocol::row_number from,
                                                            std::size_t limit) override {
    return behind_->rows_from(from, limit);
  }
  store_result<std::vector<stored_batch>> batches_from(protocol::row_number from,
                                                       std::size_t limit) override {
    return behind_->batches_from(from, limit);
  }
  store_result<log_head> head() override { return behind_->head(); }
  dispatch_store& dispatches() override { return behind_->dispatches(); }

 protected:
  /// Ends the store behind, which still answers what waits: a store whose members hear those
  /// answers calls this in its destructor.
  void end() { behind_.reset(); }

 private:
  std::unique_ptr<store> behind_;
};

}  // namespace leasehold::actors
