#include "rule_cases.hpp"

namespace leasehold::e2e {
namespace {

using protocol::event_kind;
using protocol::outcome;
using enum protocol::decision;
using enum protocol::reason_class;
using why = protocol::reason;
using scene = rule_scene;

protocol::lease_frame at(protocol::lease_frame f, std::int64_t sent_at) {
  f.what.sent_at = {sent_at};
  return f;
}

std::int64_t now(const scene& s) { return s.world().worker.now().ms; }

constexpr std::int64_t ten_minutes_ms = 600'000;

}  // namespace

std::vector<rule_case> general_cases() {
  return {
      {"1", "nobody-knows-the-lease", [](scene& s) { return s.tell(s.renew(1)); }, rejected,
       why::unknown_lease, permanent},
      {"", "another-tenants-lease-reads-as-unknown",
       [](scene& s) {
         s.active();
         return s.tell_as_stranger(s.renew(1));
       },
       rejected, why::unknown_lease, permanent},
      {"2", "generation-0-is-none",
       [](scene& s) {
         s.active();
         return s.tell(s.renew(1, 0));
       },
       rejected, why::invalid_frame, permanent},
      {"2", "nothing-is-sent-at-0",
       [](scene& s) {
         s.active();
         return s.tell(at(s.renew(1), 0));
       },
       rejected, why::invalid_frame, permanent},
      {"2", "a-renew-needs-a-sequence",
       [](scene& s) {
         s.active();
         return s.tell(s.renew(0));
       },
       rejected, why::invalid_frame, permanent},
      {"2", "progress-needs-a-sequence",
       [](scene& s) {
         s.active();
         return s.tell(s.progress(0, "x"));
       },
       rejected, why::invalid_frame, permanent},
      {"2", "a-result-needs-an-outcome",
       [](scene& s) {
         s.active();
         return s.tell(s.result(outcome::none));
       },
       rejected, why::invalid_frame, permanent},
      {"", "nobody-speaks-in-anothers-name",
       [](scene& s) {
         s.active();
         return s.world().other.tell(s.renew(1));
       },
       rejected, why::holder_not_yours, permanent},
      {"", "nobody-speaks-without-a-name",
       [](scene& s) {
         s.active();
         auto f = s.renew(1);
         f.what.from = {};
         return s.tell(std::move(f));
       },
       rejected, why::holder_not_yours, permanent},
      {"3", "a-repeated-release-is-known-by-its-request",
       [](scene& s) {
         s.released();
         return s.tell(s.release("hand-back"));
       },
       ignored, why::duplicate_request, ok},
      {"3", "a-request-id-names-one-request",
       [](scene& s) {
         s.released();
         return s.tell(s.release("hand-back", 2));
       },
       rejected, why::request_reused, permanent},
      {"4", "the-last-report-reconciles",
       [](scene& s) {
         s.unresolved();
         return s.tell(s.result(outcome::cancelled));
       },
       accepted, why::reconciled, ok},
      {"4", "a-release-reconciles-too",
       [](scene& s) {
         s.unresolved();
         return s.tell(s.frame(event_kind::release));
       },
       accepted, why::reconciled, ok},
      {"4", "a-report-of-one-of-two-reconciles-in-part",
       [](scene& s) {
         s.unresolved_twice();
         return s.tell(s.result(outcome::failed, "late"));
       },
       accepted, why::reconciled_in_part, ok},
      {"13", "an-old-copy-of-a-report-proves-nothing",
       [](scene& s) {
         s.unresolved();
         return s.tell(at(s.result(outcome::cancelled), now(s) - ten_minutes_ms));
       },
       rejected, why::lease_expired, permanent},
      {"5", "a-generation-that-was-never-granted",
       [](scene& s) {
         s.active();
         return s.tell(s.renew(1, 2));
       },
       rejected, why::unknown_generation, permanent},
      {"6", "a-generation-that-is-over",
       [](scene& s) {
         s.second_active();
         return s.tell(s.renew(1));
       },
       rejected, why::stale_generation, permanent},
      {"7", "a-second-holder-of-a-live-generation",
       [](scene& s) {
         s.active();
         return s.tell_as_other(s.renew(1));
       },
       rejected, why::ownership_conflict, permanent},
      {"8", "another-holder-when-nobody-has-authority",
       [](scene& s) {
         s.released();
         return s.tell_as_other(s.renew(1));
       },
       rejected, why::holder_mismatch, permanent},
      {"9", "the-same-result-again",
       [](scene& s) {
         s.completed();
         return s.tell(s.result(outcome::success, "done"));
       },
       ignored, why::duplicate_terminal, ok},
      {"9", "another-outcome-than-before",
       [](scene& s) {
         s.completed();
         return s.tell(s.result(outcome::failed, "done"));
       },
       rejected, why::terminal_conflict, permanent},
      {"9", "another-detail-than-before",
       [](scene& s) {
         s.completed();
         return s.tell(s.result(outcome::success, "done twice"));
       },
       rejected, why::terminal_conflict, permanent},
      {"9", "the-same-failure-while-a-retry-is-waited-for",
       [](scene& s) {
         s.retrying();
         return s.tell(s.result(outcome::failed, "broken", true));
       },
       ignored, why::duplicate_terminal, ok},
      {"9", "a-result-of-a-job-that-ended-without-one",
       [](scene& s) {
         s.offered({{"max_losses", 1}});
         s.told(s.frame(event_kind::decline));
         return s.tell(s.result(outcome::success));
       },
       rejected, why::lease_settled, permanent},
      {"10", "a-renew-of-a-settled-job",
       [](scene& s) {
         s.completed();
         return s.tell(s.renew(1));
       },
       rejected, why::lease_settled, permanent},
      {"10", "a-renew-while-a-retry-is-waited-for",
       [](scene& s) {
         s.retrying();
         return s.tell(s.renew(1));
       },
       rejected, why::generation_closed, permanent},
      {"11", "released-again",
       [](scene& s) {
         s.released();
         return s.tell(s.frame(event_kind::release));
       },
       ignored, why::duplicate_release, ok},
      {"11", "declined-again",
       [](scene& s) {
         s.declined();
         return s.tell(s.frame(event_kind::decline));
       },
       ignored, why::duplicate_decline, ok},
      {"12", "an-ack-of-a-declined-offer",
       [](scene& s) {
         s.declined();
         return s.tell(s.frame(event_kind::ack));
       },
       rejected, why::offer_declined, permanent},
      {"12", "a-renew-of-a-released-lease",
       [](scene& s) {
         s.released();
         return s.tell(s.renew(1));
       },
       rejected, why::lease_released, permanent},
      {"12", "a-renew-of-a-revoked-lease",
       [](scene& s) {
         s.revoked();
         return s.tell(s.renew(1));
       },
       rejected, why::lease_revoked, permanent},
      {"13", "a-renew-of-an-expired-lease",
       [](scene& s) {
         s.expired();
         return s.tell(s.renew(1));
       },
       rejected, why::lease_expired, permanent},
      {"13", "a-renew-while-unresolved",
       [](scene& s) {
         s.unresolved();
         return s.tell(s.renew(2));
       },
       rejected, why::lease_expired, permanent},
      {"14", "a-renew-of-a-frozen-lease",
       [](scene& s) {
         s.frozen();
         return s.tell(s.renew(1));
       },
       rejected, why::lease_frozen, retryable},
      {"15", "sent-in-the-future",
       [](scene& s) {
         s.active();
         return s.tell(at(s.renew(1), now(s) + ten_minutes_ms));
       },
       rejected, why::timestamp_in_future, permanent},
      {"16", "sent-before-the-grant",
       [](scene& s) {
         s.active();
         return s.tell(at(s.renew(1), now(s) - ten_minutes_ms));
       },
       rejected, why::timestamp_before_issue, permanent},
  };
}

}  // namespace leasehold::e2e
