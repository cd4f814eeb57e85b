// What routes that show cancellation dispatches share: a call of their tables beside the loop.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "leasehold/actors/dispatch_store.hpp"
#include "src/routes.hpp"

namespace leasehold::server {

/// The most events of one job that are shown: as many as rows of its evidence.
inline constexpr std::size_t most_dispatch_events = 20'000;

struct dispatch_events {
  std::vector<protocol::dispatch_event> all;  ///< the oldest first
  bool complete = true;                       ///< false: there are more
};

void refuse_unread_dispatches(const call_ptr& c, const actors::store_error& fault);

/// Asks the tables beside the loop, then calls `then` on it; refuses when too many calls wait, or
/// the tables cannot be read. `ask` gets the store and what it answers to.
template <class Result, class Ask, class Then>
void with_dispatches(const call_ptr& c, Ask ask, Then then) {
  auto store = c->api->shared.dispatches;
  if (store == nullptr) {
    c->refuse(protocol::reason::store_unavailable, "This coordinator keeps no dispatches.");
    return;
  }
  auto answered = [c, then = std::move(then)](actors::store_result<Result> got) {
    auto kept = std::make_shared<actors::store_result<Result>>(std::move(got));
    c->api->post([c, then, kept] {
      if (const auto* fault = std::get_if<actors::store_error>(kept.get())) {
        refuse_unread_dispatches(c, *fault);
      } else {
        then(std::get<Result>(*kept));
      }
    });
  };
  auto task = [store, ask = std::move(ask), answered = std::move(answered)] {
    ask(*store, actors::dispatch_store::then<Result>(answered));
  };
  if (!c->api->shared.reads->submit(std::move(task))) {
    c->refuse(protocol::reason::rate_limited, "Too many reads wait; ask again.");
  }
}

/// The events of a job, none where no dispatches are kept.
void with_dispatch_events(const call_ptr& c, const protocol::lease_key& key,
                          std::function<void(const dispatch_events&)> then);

}  // namespace leasehold::server
