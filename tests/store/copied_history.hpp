// A store worth copying: a history with a checkpoint in its middle, and a cancel whose process is
// registered and that was retried once.
#pragma once

#include <future>
#include <utility>

#include "tests/store/history.hpp"
#include "tests/store/store_conformance.hpp"
#include "tests/support/memory_store.hpp"

namespace leasehold::tests {

inline void cancel_with_a_process(actors::store& to) {
  protocol::dispatch_change open;
  open.key = key_of("a");
  open.gen = {1};
  open.at = open.cancel_requested_at = {5'000};
  open.cancel_deadline = {9'000};
  protocol::dispatch_change handle = open;
  handle.what = protocol::dispatch_change::kind::handle;
  handle.process = {"linux", 4242, "5f6c1a52-7d0e-4a51-9f1e-5e4b8a6d2c11", 908'070, 4242};
  auto what = batch_of({});
  what.dispatches = {open, handle};
  expect(commit(to, std::move(what)));
  std::promise<void> done;
  to.dispatches().operate(key_of("a"), protocol::dispatch_operation::retry,
                          [&done](const auto&) { done.set_value(); });
  done.get_future().wait();
}

/// In a few commits; yields where the log ends.
inline actors::log_head fill_with_history(actors::store& to, std::uint32_t seed) {
  constexpr std::int64_t rows_of_a_commit = 40;
  memory_store draft;
  history past(draft, seed);
  for (const char* name : {"a", "b", "c"}) past.submit(name);
  past.wander(200);
  past.work("steady");
  actors::checkpoint_slice slice;
  for (const auto& [key, image] : past.images()) slice.changed.push_back({key, image});
  slice.upto = past.last_row();
  slice.last = true;
  past.wander(100);
  auto what = batch_of({});
  const auto rows = draft.all_rows();
  for (const auto& row : rows) {
    what.groups.push_back(protocol::encode_row(row));
    ++what.rows;
    if (row.input.kind == protocol::event_kind::policy) {
      what.policies.emplace_back(row.policy, *protocol::policy_from_text(row.attachment));
    }
    if (what.rows == rows_of_a_commit || &row == &rows.back()) {
      expect(commit(to, std::exchange(what, batch_of({}))));
    }
  }
  expect(checkpoint(to, std::move(slice)));
  cancel_with_a_process(to);
  return expect(to.head());
}

}  // namespace leasehold::tests
