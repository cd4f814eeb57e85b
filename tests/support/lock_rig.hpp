// Locks on the rig: who asks for one by a call, and by a frame.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/coordinator_rig.hpp"

namespace leasehold::tests {

inline protocol::lock_name lock_named(const std::string& target,
                                      const std::string& program = "prog") {
  protocol::lock_name name;
  name.program = program;
  name.kind = protocol::target_kind::opaque;
  name.target = target;
  return name;
}

inline std::string lock_id(const std::string& target, const std::string& program = "prog") {
  const auto named = name_plainly(protocol::tenant_id{"t"}, lock_named(target, program));
  return std::get<actors::named_lock>(named).lease.value;
}

/// A request of `owner`, as the HTTP API makes one.
inline actors::acquire_request request_of(const std::string& owner, const std::string& target) {
  auto named =
      std::get<actors::named_lock>(name_plainly(protocol::tenant_id{"t"}, lock_named(target)));
  actors::acquire_request asked;
  asked.key = {protocol::tenant_id{"t"}, std::move(named.lease)};
  asked.canonical = std::move(named.canonical);
  asked.holder = protocol::holder{owner + "/1"};
  asked.sent_at = {1};
  asked.spec.name = std::move(named.name);
  asked.spec.typed = target;
  return asked;
}

/// Somebody who asks by calls.
class lock_caller {
 public:
  lock_caller(coordinator_rig& rig, std::string name) : rig_(rig), name_(std::move(name)) {}

  /// The answer stays empty while it waits.
  using pending = std::shared_ptr<std::optional<actors::answer>>;
  pending ask(actors::acquire_request what) {
    auto said = std::make_shared<std::optional<actors::answer>>();
    rig_.gateway().acquire(std::move(what), [said](actors::answer a) { *said = std::move(a); });
    rig_.settle();
    return said;
  }
  pending ask(const std::string& target, std::int64_t wait_ms = 0,
              const std::string& request = "") {
    auto what = request_of(name_, target);
    what.wait = {wait_ms};
    what.request = protocol::request_id{request};
    return ask(std::move(what));
  }
  actors::answer operate(protocol::event_kind kind, const std::string& target, std::int64_t gen,
                         std::int64_t seq = 0, const std::string& request = "") {
    protocol::event what;
    what.kind = kind;
    what.gen = {gen};
    what.from = protocol::holder{name_ + "/1"};
    what.seq = {seq};
    what.request = protocol::request_id{request};
    what.sent_at = rig_.clock->now();
    return tests::operate(rig_, lock_id(target), std::move(what));
  }
  actors::answer release(const std::string& target, std::int64_t gen,
                         const std::string& request = "") {
    return operate(protocol::event_kind::release, target, gen, 0, request);
  }
  /// Does not wait for its commit.
  pending begin_release(const std::string& target, std::int64_t gen) {
    protocol::event what;
    what.kind = protocol::event_kind::release;
    what.gen = {gen};
    what.from = protocol::holder{name_ + "/1"};
    what.sent_at = rig_.clock->now();
    auto said = std::make_shared<std::optional<actors::answer>>();
    rig_.gateway().operate({protocol::tenant_id{"t"}, protocol::lease_id{lock_id(target)}},
                           std::move(what), [said](actors::answer a) { *said = std::move(a); });
    rig_.settle();
    return said;
  }
  actors::answer renew(const std::string& target, std::int64_t gen, std::int64_t seq) {
    return operate(protocol::event_kind::renew, target, gen, seq);
  }

 private:
  coordinator_rig& rig_;
  std::string name_;
};

/// The Acquire frame of a worker.
inline protocol::acquire acquire_frame(const rig_worker& worker, const std::string& target,
                                       const std::string& request, std::int64_t wait_ms = 0) {
  protocol::acquire frame;
  frame.what.kind = protocol::event_kind::acquire;
  frame.what.from = worker.holder();
  frame.what.sent_at = {1};
  frame.what.request = protocol::request_id{request};
  frame.name = lock_named(target);
  frame.wait = {wait_ms};
  return frame;
}

}  // namespace leasehold::tests
