// What every store must do, run for each of them.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "leasehold/actors/store.hpp"
#include "leasehold/protocol/record_image.hpp"
#include "src/store/batch_log.hpp"

namespace leasehold::tests {

/// A store and the way to end and begin it as a process would.
class store_subject {
 public:
  virtual ~store_subject() = default;
  virtual actors::store& opened() = 0;
  /// Ends the store without a checkpoint and opens it again.
  virtual void reopen() = 0;
  /// Makes the next commit fail; false when this store cannot be told to.
  virtual bool fail_next_commit() = 0;
};

using make_subject = std::function<std::unique_ptr<store_subject>()>;

inline protocol::lease_key key_of(std::string lease) {
  return {protocol::tenant_id("acme"), protocol::lease_id(std::move(lease))};
}

/// A renew of this lease, as a row of a group of its own.
inline protocol::stored_row renew_row(const std::string& lease, std::int64_t sequence,
                                      std::int64_t prev_row = 0) {
  protocol::stored_row r;
  r.key = key_of(lease);
  r.prev_row.value = prev_row;
  r.at.ms = 1'700'000'000'000 + sequence;
  r.ingress_at = r.at;
  r.input.kind = protocol::event_kind::renew;
  r.input.lease = r.key.lease;
  r.input.gen.value = 1;
  r.input.from = protocol::holder("w/000102030405060708090a0b0c0d0e0f");
  r.input.seq.value = sequence;
  r.input.sent_at.ms = r.at.ms - 3;
  r.has_input = true;
  r.state_before = protocol::lease_state::active;
  r.answer.decision = protocol::decision::accepted;
  r.answer.reason = protocol::reason::renewed;
  return r;
}

inline actors::batch batch_of(const std::vector<protocol::stored_row>& rows) {
  actors::batch what;
  for (const auto& r : rows) what.groups.push_back(protocol::encode_row(r));
  what.rows = static_cast<std::int64_t>(rows.size());
  what.anchor = {"boot-1", 5000, 1'700'000'000'000, {1'700'000'000'000}};
  return what;
}

inline actors::store_result<actors::committed> commit(actors::store& to, actors::batch what) {
  std::promise<actors::store_result<actors::committed>> promise;
  auto answer = promise.get_future();
  to.commit(std::move(what), [&promise](actors::store_result<actors::committed> result) {
    promise.set_value(std::move(result));
  });
  return answer.get();
}

inline actors::store_result<bool> checkpoint(actors::store& to, actors::checkpoint_slice slice) {
  std::promise<actors::store_result<bool>> promise;
  auto answer = promise.get_future();
  to.checkpoint(std::move(slice), [&promise](actors::store_result<bool> result) {
    promise.set_value(std::move(result));
  });
  return answer.get();
}

template <class T>
T expect(actors::store_result<T> result) {
  if (auto* fault = std::get_if<actors::store_error>(&result)) {
    ADD_FAILURE() << fault->sentence;
    return T{};
  }
  return std::move(std::get<T>(result));
}

inline std::int64_t row_before(actors::store& from, protocol::instant at) {
  std::promise<actors::store_result<protocol::row_number>> promise;
  from.find_row_before(at, [&promise](actors::store_result<protocol::row_number> found) {
    promise.set_value(std::move(found));
  });
  return expect(promise.get_future().get()).value;
}

/// Cuts the log, and yields the row of the anchor.
inline std::int64_t cut(actors::store& from, protocol::row_number upto) {
  std::promise<actors::store_result<protocol::row_number>> promise;
  from.cut(upto, [&promise](actors::store_result<protocol::row_number> anchor) {
    promise.set_value(std::move(anchor));
  });
  return expect(promise.get_future().get()).value;
}

/// All that a start was given.
struct recovered_store {
  actors::recovered_head head;
  actors::store_state state;
  std::map<protocol::lease_key, protocol::fold::lease_image> records;
  std::map<protocol::policy_id, protocol::policy> policies;
  std::vector<protocol::stored_row> rows;
};

inline recovered_store recover(actors::store& from) {
  recovered_store out;
  out.head = expect(from.recover(
      [&out](const actors::store_state& s) { out.state = s; },
      [&out](actors::checkpoint_entry&& e) { out.records[e.key] = std::move(e.image); },
      [&out](protocol::policy_id id, const protocol::policy& p) { out.policies[id] = p; },
      [&out](actors::stored_batch&& b) {
        auto decoded = protocol::decode_rows(b.rows, b.first_row);
        EXPECT_FALSE(decoded.broken);
        for (auto& r : decoded.rows) out.rows.push_back(std::move(r));
      }));
  return out;
}

inline protocol::fold::lease_image image_of(const std::string& lease, std::int64_t last_row) {
  protocol::fold::lease_image image;
  image.state.lease = protocol::lease_id(lease);
  image.state.job = protocol::job_id(lease);
  image.state.kind = protocol::lease_kind::job;
  image.state.state = protocol::lease_state::vacant;
  image.last_row.value = last_row;
  image.body = "body of " + lease;
  return image;
}

class StoreConformance : public ::testing::TestWithParam<make_subject> {
 protected:
  void SetUp() override { subject_ = GetParam()(); }
  actors::store& store() { return subject_->opened(); }

  std::unique_ptr<store_subject> subject_;
};

}  // namespace leasehold::tests
