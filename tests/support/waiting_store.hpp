// A store whose calls are over when they return, so that a coordinator on a clock of the test's
// runs on a database of its own in the same order every time.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <utility>

#include "support/forwarding_store.hpp"

namespace leasehold::tests {

class waiting_store final : public forwarding_store {
 public:
  using forwarding_store::forwarding_store;

  void commit(actors::batch what,
              std::function<void(actors::store_result<actors::committed>)> done) override {
    wait<actors::committed>(
        done, [&](auto hear) { forwarding_store::commit(std::move(what), std::move(hear)); });
  }
  void checkpoint(actors::checkpoint_slice slice,
                  std::function<void(actors::store_result<bool>)> done) override {
    wait<bool>(done,
               [&](auto hear) { forwarding_store::checkpoint(std::move(slice), std::move(hear)); });
  }
  void read_grant(protocol::lease_key key, protocol::row_number newest,
                  std::function<void(actors::store_result<actors::stored_grant>)> done) override {
    wait<actors::stored_grant>(done, [&](auto hear) {
      forwarding_store::read_grant(std::move(key), newest, std::move(hear));
    });
  }
  void find_row_before(
      protocol::instant at,
      std::function<void(actors::store_result<protocol::row_number>)> done) override {
    wait<protocol::row_number>(
        done, [&](auto hear) { forwarding_store::find_row_before(at, std::move(hear)); });
  }
  void cut(protocol::row_number upto,
           std::function<void(actors::store_result<protocol::row_number>)> done) override {
    wait<protocol::row_number>(done,
                               [&](auto hear) { forwarding_store::cut(upto, std::move(hear)); });
  }

 private:
  template <class Said, class Ask>
  static void wait(const std::function<void(actors::store_result<Said>)>& done, const Ask& ask) {
    std::promise<actors::store_result<Said>> promise;
    ask([&promise](actors::store_result<Said> said) { promise.set_value(std::move(said)); });
    done(promise.get_future().get());
  }
};

}  // namespace leasehold::tests
