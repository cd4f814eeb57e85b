// For a store that keeps no tables of cancellation dispatch: every call says so, and the coordinator
// does without. Cancels are told to their holders over the stream, as ever; nothing is tried again,
// no process is registered and nothing is proven.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "leasehold/actors/dispatch_store.hpp"

namespace leasehold::actors {

/// What a store without the tables answers: `foreign`, by which the coordinator knows it.
inline store_error no_dispatch_tables() {
  return {store_error::kind::foreign,
          "This store keeps no cancellation dispatches; cancels are told over the stream alone."};
}

class no_dispatches final : public dispatch_store {
 public:
  store_result<protocol::instant> now() override { return no_dispatch_tables(); }
  void page(dispatch_query, then<dispatch_page> done) override { done(no_dispatch_tables()); }
  void claim(std::vector<protocol::dispatch_claim>, protocol::dispatch_pace,
             then<std::vector<dispatch_claimed>> done) override {
    done(no_dispatch_tables());
  }
  void report(std::vector<protocol::dispatch_report>, protocol::dispatch_pace,
              then<std::vector<dispatch_reported>> done) override {
    done(no_dispatch_tables());
  }
  void operate(protocol::lease_key, protocol::dispatch_operation,
               then<dispatch_reported> done) override {
    done(no_dispatch_tables());
  }
  void find(protocol::lease_key, then<std::optional<protocol::dispatch_record>> done) override {
    done(no_dispatch_tables());
  }
  void events(protocol::lease_key, std::int64_t, std::size_t,
              then<std::vector<protocol::dispatch_event>> done) override {
    done(no_dispatch_tables());
  }
  void exited(protocol::instant, std::size_t,
              then<std::vector<protocol::dispatch_record>> done) override {
    done(no_dispatch_tables());
  }
  void count(then<dispatch_counts> done) override { done(no_dispatch_tables()); }
};

}  // namespace leasehold::actors
