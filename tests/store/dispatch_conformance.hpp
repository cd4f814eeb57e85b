// What the tables of cancellation dispatch must do, run for each store that keeps them
// (cancellation-dispatch.md).
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "leasehold/actors/store.hpp"

namespace leasehold::tests {

/// The time that every store of a test is told.
using dispatch_time = std::atomic<std::int64_t>;

/// A store, and what its coordinator and a test of its faults do.
class dispatch_subject {
 public:
  virtual ~dispatch_subject() = default;
  virtual actors::dispatch_store& opened() = 0;
  /// A claimant of its own on the same tables.
  virtual std::shared_ptr<actors::dispatch_store> another() = 0;
  /// Ends the store and opens it again.
  virtual void reopen() = 0;
  /// A batch of the coordinator that has nothing else.
  virtual void apply(std::vector<protocol::dispatch_change> changes) = 0;
  /// A row in the way of an event that is to be appended, and out of it again.
  virtual void put_event(const protocol::dispatch_event& event) = 0;
  virtual void remove_event(const protocol::dispatch_event& event) = 0;
  virtual bool has_handle(const protocol::lease_key& key, protocol::generation gen) = 0;

  [[nodiscard]] protocol::instant now() const { return {time_->load()}; }
  void set_time(protocol::instant to) { time_->store(to.ms); }

 protected:
  std::shared_ptr<dispatch_time> time_ = std::make_shared<dispatch_time>(1'700'000'000'000);
};

using make_dispatch_subject = std::function<std::unique_ptr<dispatch_subject>()>;

inline protocol::lease_key job_key(std::string job, std::string tenant = "acme") {
  return {protocol::tenant_id(std::move(tenant)), protocol::lease_id(std::move(job))};
}

/// Asks, and waits for the answer.
template <class Said, class Ask>
actors::store_result<Said> said_of(const Ask& ask) {
  std::promise<actors::store_result<Said>> promise;
  auto answer = promise.get_future();
  ask([&promise](actors::store_result<Said> said) { promise.set_value(std::move(said)); });
  return answer.get();
}

template <class Said>
Said value_of(actors::store_result<Said> said) {
  if (auto* fault = std::get_if<actors::store_error>(&said)) {
    ADD_FAILURE() << fault->sentence;
    return Said{};
  }
  return std::move(std::get<Said>(said));
}

class DispatchConformance : public ::testing::TestWithParam<make_dispatch_subject> {
 protected:
  static constexpr std::string_view boot = "11111111-2222-3333-4444-555555555555";

  void SetUp() override { subject_ = GetParam()(); }
  actors::dispatch_store& store() { return subject_->opened(); }
  [[nodiscard]] protocol::instant now() const { return subject_->now(); }
  void pass(std::int64_t ms) { subject_->set_time(now() + protocol::duration{ms}); }

  // ---- the coordinator

  /// The change of a cancel at `now`, whose deadline is 10 s later.
  [[nodiscard]] protocol::dispatch_change opening(const protocol::lease_key& key,
                                                  std::int64_t gen = 1) const;
  void open(const protocol::lease_key& key, std::int64_t gen = 1);
  void close(const protocol::lease_key& key, std::int64_t gen = 0);
  void forget(const protocol::lease_key& key);
  void register_process(const protocol::lease_key& key, std::int64_t gen = 1);

  // ---- a claimant

  /// A claim of the record as it is now, by `owner`.
  protocol::dispatch_claim claim_of(const protocol::lease_key& key, std::string owner = "one");
  actors::dispatch_claimed claim(const protocol::lease_key& key, std::string owner = "one");
  actors::dispatch_claimed claim(const protocol::dispatch_claim& asked);
  actors::dispatch_reported report(const actors::dispatch_claimed& claimed,
                                   protocol::dispatch_result result);
  actors::dispatch_reported report(const protocol::dispatch_report& said);
  static protocol::dispatch_report report_of(const actors::dispatch_claimed& claimed,
                                             protocol::dispatch_result result);
  actors::dispatch_reported operate(const protocol::lease_key& key,
                                    protocol::dispatch_operation what);

  // ---- a reader

  std::optional<protocol::dispatch_record> find(const protocol::lease_key& key);
  protocol::dispatch_record record(const protocol::lease_key& key);
  std::vector<protocol::dispatch_event> events(const protocol::lease_key& key,
                                               std::int64_t after = 0, std::size_t limit = 64);
  actors::dispatch_page page(actors::dispatch_query what);
  /// The jobs of all pages of `limit` records.
  std::vector<std::string> jobs(actors::dispatch_query what);
  std::vector<std::string> exited(protocol::instant since, std::size_t limit = 64);

  protocol::dispatch_pace pace_{{30'000}, {1'000}, {300'000}};
  std::unique_ptr<dispatch_subject> subject_;
  int tokens_ = 0;
};

}  // namespace leasehold::tests
