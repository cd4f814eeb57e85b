#include "tests/store/dispatch_conformance.hpp"
#include "tests/support/memory_store.hpp"

namespace leasehold::tests {
namespace {

class memory_dispatch_subject final : public dispatch_subject {
 public:
  memory_dispatch_subject() {
    store_->dispatches().set_clock([time = time_] { return protocol::instant{time->load()}; });
  }
  actors::dispatch_store& opened() override { return store_->dispatches(); }
  std::shared_ptr<actors::dispatch_store> another() override {
    return {store_, &store_->dispatches()};
  }
  void reopen() override { store_->crash(); }
  void apply(std::vector<protocol::dispatch_change> changes) override {
    actors::batch what;
    what.dispatches = std::move(changes);
    value_of(said_of<actors::committed>(
        [&](auto hear) { store_->commit(std::move(what), std::move(hear)); }));
  }
  void put_event(const protocol::dispatch_event& event) override {
    store_->dispatches().put_event(event);
  }
  void remove_event(const protocol::dispatch_event& event) override {
    store_->dispatches().remove_event(event);
  }
  bool has_handle(const protocol::lease_key& key, protocol::generation gen) override {
    return store_->dispatches().handle_of(key, gen).has_value();
  }

 private:
  std::shared_ptr<memory_store> store_ = std::make_shared<memory_store>();
};

INSTANTIATE_TEST_SUITE_P(Memory, DispatchConformance, ::testing::Values(make_dispatch_subject([] {
                           return std::make_unique<memory_dispatch_subject>();
                         })));

}  // namespace
}  // namespace leasehold::tests
