// What the tests of the worker's side have in common.
#pragma once

#include <gtest/gtest.h>

#include "client/session_bench.hpp"

namespace leasehold::tests {

/// Whether a frame of the coordinator has this body.
template <class Body>
auto is() {
  return [](const protocol::coordinator_frame& f) { return std::holds_alternative<Body>(f.body); };
}

/// A session against the fake coordinator, and frames that it never sent.
struct session_test : testing::Test {
  session_bench bench;
  protocol::lease_standing standing(const grant& what, std::int64_t row,
                                    protocol::lease_state state) {
    return {.lease = what.lease,
            .gen = what.gen,
            .row = {row},
            .state = state,
            .expires_at = bench.server_now() + protocol::duration{3000},
            .renew_sequence = {},
            .progress_sequence = {},
            .cancel_requested = false,
            .cancel_deadline = {}};
  }
  protocol::offer offer_frame(const grant& what, std::int64_t row) {
    protocol::offer offer;
    offer.standing = standing(what, row, protocol::lease_state::offered);
    offer.job = protocol::job_id(what.lease.value);
    offer.queue = "q";
    offer.lease_duration = {3000};
    return offer;
  }
};

}  // namespace leasehold::tests
