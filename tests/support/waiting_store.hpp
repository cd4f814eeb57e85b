// A store whose calls are over when they return, so that a coordinator on a clock of the test's
// runs on a database of its own in the same order every time.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <utility>
#include <vector>
#include "leasehold/actors/forwarding_store.hpp"

namespace leasehold::tests {

class waiting_store final : public actors::forwarding_store {
 public:
  using actors::forwarding_store::forwarding_store;

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
  actors::dispatch_store& dispatches() override { return dispatches_; }

 private:
  /// The tables of the store behind, by calls that are over when they return.
  class waiting_dispatches final : public actors::dispatch_store {
   public:
    explicit waiting_dispatches(waiting_store& of) : of_(of) {}

    actors::store_result<protocol::instant> now() override { return behind().now(); }
    void page(actors::dispatch_query what, then<actors::dispatch_page> done) override {
      wait<actors::dispatch_page>(
          done, [&](auto hear) { behind().page(std::move(what), std::move(hear)); });
    }
    void claim(std::vector<protocol::dispatch_claim> asked, protocol::dispatch_pace pace,
               then<std::vector<actors::dispatch_claimed>> done) override {
      wait<std::vector<actors::dispatch_claimed>>(
          done, [&](auto hear) { behind().claim(std::move(asked), pace, std::move(hear)); });
    }
    void report(std::vector<protocol::dispatch_report> said, protocol::dispatch_pace pace,
                then<std::vector<actors::dispatch_reported>> done) override {
      wait<std::vector<actors::dispatch_reported>>(
          done, [&](auto hear) { behind().report(std::move(said), pace, std::move(hear)); });
    }
    void operate(protocol::lease_key key, protocol::dispatch_operation what,
                 then<actors::dispatch_reported> done) override {
      wait<actors::dispatch_reported>(
          done, [&](auto hear) { behind().operate(std::move(key), what, std::move(hear)); });
    }
    void find(protocol::lease_key key,
              then<std::optional<protocol::dispatch_record>> done) override {
      wait<std::optional<protocol::dispatch_record>>(
          done, [&](auto hear) { behind().find(std::move(key), std::move(hear)); });
    }
    void events(protocol::lease_key key, std::int64_t after, std::size_t limit,
                then<std::vector<protocol::dispatch_event>> done) override {
      wait<std::vector<protocol::dispatch_event>>(
          done, [&](auto hear) { behind().events(std::move(key), after, limit, std::move(hear)); });
    }
    void exited(protocol::instant since, std::size_t limit,
                then<std::vector<protocol::dispatch_record>> done) override {
      wait<std::vector<protocol::dispatch_record>>(
          done, [&](auto hear) { behind().exited(since, limit, std::move(hear)); });
    }
    void count(then<actors::dispatch_counts> done) override {
      wait<actors::dispatch_counts>(done, [&](auto hear) { behind().count(std::move(hear)); });
    }

   private:
    [[nodiscard]] actors::dispatch_store& behind() { return of_.forwarding_store::dispatches(); }

    waiting_store& of_;
  };

  template <class Said, class Ask>
  static void wait(const std::function<void(actors::store_result<Said>)>& done, const Ask& ask) {
    std::promise<actors::store_result<Said>> promise;
    ask([&promise](actors::store_result<Said> said) { promise.set_value(std::move(said)); });
    done(promise.get_future().get());
  }

  waiting_dispatches dispatches_{*this};
};

}  // namespace leasehold::tests
