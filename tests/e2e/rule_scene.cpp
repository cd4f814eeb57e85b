#include "rule_scene.hpp"

namespace leasehold::e2e {

using protocol::decision;
using protocol::event_kind;
using protocol::outcome;
using protocol::reason;

namespace {

constexpr std::int64_t hour_ms = 3'600'000;

/// Nothing ends or is offered again by itself.
json::object with_long_terms(const json::object& policy) {
  json::object out{{"ack_timeout_ms", hour_ms},       {"lease_duration_ms", hour_ms},
                   {"cancel_grace_ms", hour_ms},      {"reconcile_window_ms", hour_ms},
                   {"max_clock_skew_ms", 60'000},     {"retry_backoff_ms", hour_ms},
                   {"retry_backoff_max_ms", hour_ms}, {"lock_delay_ms", 0}};
  for (const auto& key : policy) out[key.key()] = key.value();
  return out;
}

const json::object offered_again{{"retry_backoff_ms", 0}};

}  // namespace

rule_world::rule_world(int threads)
    : server(threads),
      worker(server, "w1"),
      other(server, "w2", 'b'),
      stranger(server, "stranger", 'c') {
  for (auto* each : {&worker, &other, &stranger}) each->hello();
  worker.credit(1000);
}

void rule_scene::offered(const json::object& policy) {
  world_.server.submit(lease_, with_long_terms(policy));
  world_.worker.offer_of(lease_);
}

void rule_scene::start(std::int64_t gen) {
  acquired_at_ = world_.worker.start(lease_, gen).acquired_at;
}

void rule_scene::let_time_pass() {
  // What a worker reckons is never ahead of the coordinator.
  EXPECT_TRUE(eventually([this] { return world_.worker.now() > acquired_at_; }));
}

void rule_scene::active(const json::object& policy) {
  offered(policy);
  start(1);
}

void rule_scene::told(protocol::lease_frame f) {
  const auto said = tell(std::move(f));
  EXPECT_EQ(said.decision, decision::accepted) << protocol::word(said.reason);
}

void rule_scene::declined() {
  offered();
  told(frame(event_kind::decline));
}

void rule_scene::released() {
  active();
  told(release("hand-back"));
}

void rule_scene::retrying() {
  active();
  told(result(outcome::failed, "broken", true));
}

void rule_scene::completed() {
  active();
  told(result(outcome::success, "done"));
}

void rule_scene::expired() {
  active({{"lease_duration_ms", 1}});
  world_.worker.loss_of(lease_);
}

void rule_scene::revoked() {
  active();
  operate("revoke");
}

void rule_scene::cancel_requested(const json::object& policy) {
  active(policy);
  operate("cancel");
}

void rule_scene::second_active() {
  active(offered_again);
  told(frame(event_kind::release));
  world_.worker.offer_of(lease_);
  start(2);
}

void rule_scene::second_active_first_unproven() {
  active(offered_again);
  told(renew(1));
  operate("revoke", {{"force", true}});
  world_.worker.offer_of(lease_);
  start(2);
}

void rule_scene::unresolved(const json::object& policy) {
  active(policy);
  told(renew(1));
  operate("revoke");
  operate("cancel");
}

void rule_scene::unresolved_twice() {
  second_active_first_unproven();
  operate("cancel");
  operate("revoke");
}

void rule_scene::frozen() {
  active({{"on_conflict", "freeze"}});
  EXPECT_EQ(tell_as_other(renew(1)).reason, reason::ownership_conflict);
}

void rule_scene::operate(const std::string& what, const json::object& body) {
  const auto said = world_.server.post("/v1/jobs/" + lease_ + ":" + what, body, "operator");
  EXPECT_EQ(said.status, 200) << what << ": " << said.text;
}

protocol::lease_frame rule_scene::frame(event_kind kind, std::int64_t gen, std::int64_t seq) const {
  return world_.worker.frame(kind, lease_, gen, seq);
}

protocol::lease_frame rule_scene::renew(std::int64_t seq, std::int64_t gen) const {
  return frame(event_kind::renew, gen, seq);
}

protocol::lease_frame rule_scene::progress(std::int64_t seq, std::string value,
                                           std::int64_t gen) const {
  return world_.worker.progress(lease_, gen, seq, std::move(value));
}

protocol::lease_frame rule_scene::result(outcome how, std::string detail, bool retryable,
                                         std::int64_t gen) const {
  return world_.worker.result(lease_, gen, how, std::move(detail), retryable);
}

protocol::lease_frame rule_scene::release(std::string request, std::int64_t gen) const {
  auto f = frame(event_kind::release, gen);
  f.what.request = protocol::request_id{std::move(request)};
  return f;
}

protocol::frame_verdict rule_scene::tell_as_other(protocol::lease_frame f) {
  f.what.from = world_.other.holder();
  return world_.other.tell(std::move(f));
}

protocol::frame_verdict rule_scene::tell_as_stranger(protocol::lease_frame f) {
  f.what.from = world_.stranger.holder();
  return world_.stranger.tell(std::move(f));
}

}  // namespace leasehold::e2e
