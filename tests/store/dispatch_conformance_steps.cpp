// What the tests of dispatch tables do, in words.
#include <iomanip>
#include <sstream>

#include "tests/store/dispatch_conformance.hpp"

namespace leasehold::tests {

using protocol::dispatch_change;

dispatch_change DispatchConformance::opening(const protocol::lease_key& key,
                                             std::int64_t gen) const {
  dispatch_change change;
  change.what = dispatch_change::kind::open;
  change.key = key;
  change.gen.value = gen;
  change.at = now();
  change.cancel_requested_at = now();
  change.cancel_deadline = now() + protocol::duration{10'000};
  return change;
}

void DispatchConformance::open(const protocol::lease_key& key, std::int64_t gen) {
  subject_->apply({opening(key, gen)});
}

void DispatchConformance::close(const protocol::lease_key& key, std::int64_t gen) {
  dispatch_change change;
  change.what = dispatch_change::kind::close;
  change.key = key;
  change.gen.value = gen;
  change.at = now();
  subject_->apply({change});
}

void DispatchConformance::forget(const protocol::lease_key& key) {
  dispatch_change change;
  change.what = dispatch_change::kind::forget;
  change.key = key;
  change.at = now();
  subject_->apply({change});
}

void DispatchConformance::register_process(const protocol::lease_key& key, std::int64_t gen) {
  dispatch_change change;
  change.what = dispatch_change::kind::handle;
  change.key = key;
  change.gen.value = gen;
  change.at = now();
  change.process = {"linux", 4242, std::string(boot), 987'654, 4242};
  subject_->apply({change});
}

protocol::dispatch_claim DispatchConformance::claim_of(const protocol::lease_key& key,
                                                       std::string owner) {
  const auto seen = record(key);
  std::ostringstream token;
  token << std::setw(32) << std::setfill('0') << ++tokens_;
  return {key,        seen.gen,          seen.cancel_requested_at,
          seen.stage, std::string(boot), std::move(owner),
          token.str()};
}

actors::dispatch_claimed DispatchConformance::claim(const protocol::lease_key& key,
                                                    std::string owner) {
  return claim(claim_of(key, std::move(owner)));
}

actors::dispatch_claimed DispatchConformance::claim(const protocol::dispatch_claim& asked) {
  using answers = std::vector<actors::dispatch_claimed>;
  auto said = value_of(said_of<answers>([&](auto hear) { store().claim({asked}, pace_, hear); }));
  EXPECT_EQ(said.size(), 1U);
  return said.empty() ? actors::dispatch_claimed{} : said.front();
}

protocol::dispatch_report DispatchConformance::report_of(const actors::dispatch_claimed& claimed,
                                                         protocol::dispatch_result result) {
  const auto& r = claimed.record;
  return {r.key, r.gen, r.lease_owner, r.lease_token, r.version, result};
}

actors::dispatch_reported DispatchConformance::report(const actors::dispatch_claimed& claimed,
                                                      protocol::dispatch_result result) {
  return report(report_of(claimed, result));
}

actors::dispatch_reported DispatchConformance::report(const protocol::dispatch_report& what) {
  using answers = std::vector<actors::dispatch_reported>;
  auto said = value_of(said_of<answers>([&](auto hear) { store().report({what}, pace_, hear); }));
  EXPECT_EQ(said.size(), 1U);
  return said.empty() ? actors::dispatch_reported{} : said.front();
}

actors::dispatch_reported DispatchConformance::operate(const protocol::lease_key& key,
                                                       protocol::dispatch_operation what) {
  return value_of(
      said_of<actors::dispatch_reported>([&](auto hear) { store().operate(key, what, hear); }));
}

std::optional<protocol::dispatch_record> DispatchConformance::find(const protocol::lease_key& key) {
  return value_of(said_of<std::optional<protocol::dispatch_record>>(
      [&](auto hear) { store().find(key, hear); }));
}

protocol::dispatch_record DispatchConformance::record(const protocol::lease_key& key) {
  return find(key).value_or(protocol::dispatch_record{});
}

std::vector<protocol::dispatch_event> DispatchConformance::events(const protocol::lease_key& key,
                                                                  std::int64_t after,
                                                                  std::size_t limit) {
  return value_of(said_of<std::vector<protocol::dispatch_event>>(
      [&](auto hear) { store().events(key, after, limit, hear); }));
}

actors::dispatch_page DispatchConformance::page(actors::dispatch_query what) {
  return value_of(
      said_of<actors::dispatch_page>([&](auto hear) { store().page(std::move(what), hear); }));
}

std::vector<std::string> DispatchConformance::jobs(actors::dispatch_query what) {
  std::vector<std::string> found;
  while (true) {
    const auto one = page(what);
    EXPECT_LE(one.records.size(), what.limit);
    for (const auto& each : one.records) {
      found.push_back(each.key.tenant.value + "/" + each.key.lease.value);
    }
    if (!one.next) return found;
    EXPECT_NE(*one.next, what.from);
    what.from = *one.next;
  }
}

std::vector<std::string> DispatchConformance::exited(protocol::instant since, std::size_t limit) {
  std::vector<std::string> found;
  for (const auto& each : value_of(said_of<std::vector<protocol::dispatch_record>>(
           [&](auto hear) { store().exited(since, limit, hear); }))) {
    found.push_back(each.key.lease.value);
  }
  return found;
}

}  // namespace leasehold::tests
