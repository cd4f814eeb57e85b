#include "src/store/postgres_dispatch.hpp"

#include <utility>

namespace leasehold::storage {

namespace {

using actors::store_error;

class postgres_dispatches final : public actors::dispatch_store {
 public:
  explicit postgres_dispatches(postgres_dispatch_options how) : how_(std::move(how)) {}

  actors::store_result<protocol::instant> now() override { return refused(); }
  void page(actors::dispatch_query, then<actors::dispatch_page> done) override { done(refused()); }
  void claim(std::vector<protocol::dispatch_claim>, protocol::dispatch_pace,
             then<std::vector<actors::dispatch_claimed>> done) override {
    done(refused());
  }
  void report(std::vector<protocol::dispatch_report>, protocol::dispatch_pace,
              then<std::vector<actors::dispatch_reported>> done) override {
    done(refused());
  }
  void operate(protocol::lease_key, protocol::dispatch_operation,
               then<actors::dispatch_reported> done) override {
    done(refused());
  }
  void find(protocol::lease_key, then<std::optional<protocol::dispatch_record>> done) override {
    done(refused());
  }
  void events(protocol::lease_key, std::int64_t, std::size_t,
              then<std::vector<protocol::dispatch_event>> done) override {
    done(refused());
  }
  void exited(protocol::instant, std::size_t,
              then<std::vector<protocol::dispatch_record>> done) override {
    done(refused());
  }
  void count(then<actors::dispatch_counts> done) override { done(refused()); }

 private:
  static store_error refused() {
    return {store_error::kind::io, "the dispatch tables of this store cannot be read"};
  }

  postgres_dispatch_options how_;
};

}  // namespace

std::unique_ptr<actors::dispatch_store> make_postgres_dispatches(postgres_dispatch_options how) {
  return std::make_unique<postgres_dispatches>(std::move(how));
}

}  // namespace leasehold::storage
