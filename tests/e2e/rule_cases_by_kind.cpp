#include "rule_cases.hpp"

namespace leasehold::e2e {
namespace {

using protocol::event_kind;
using protocol::outcome;
using enum protocol::decision;
using enum protocol::reason_class;
using why = protocol::reason;
using scene = rule_scene;

constexpr std::int64_t ten_minutes_ms = 600'000;

}  // namespace

std::vector<rule_case> offered_cases() {
  return {
      {"ack.offered", "an-ack-of-an-offer",
       [](scene& s) {
         s.offered();
         return s.tell(s.frame(event_kind::ack));
       },
       accepted, why::ack_accepted, ok},
      {"decline.offered", "a-decline-of-an-offer",
       [](scene& s) {
         s.offered();
         return s.tell(s.frame(event_kind::decline));
       },
       accepted, why::offer_declined, ok},
      {"decline.exhausted", "the-last-decline",
       [](scene& s) {
         s.offered({{"max_losses", 1}});
         return s.tell(s.frame(event_kind::decline));
       },
       accepted, why::losses_exhausted, ok},
      {"early.deferred", "a-renew-before-the-ack",
       [](scene& s) {
         s.offered();
         return s.tell(s.renew(1));
       },
       deferred, why::awaiting_activation, pending},
      {"early.full", "one-early-frame-too-many",
       [](scene& s) {
         s.offered({{"defer_limit", 1}});
         EXPECT_EQ(s.tell(s.renew(1)).decision, deferred);
         return s.tell(s.progress(1, "x"));
       },
       rejected, why::reorder_buffer_full, retryable},
  };
}

std::vector<rule_case> active_cases() {
  return {
      {"ack.duplicate", "acked-again",
       [](scene& s) {
         s.active();
         return s.tell(s.frame(event_kind::ack));
       },
       ignored, why::duplicate_ack, ok},
      {"decline.acked", "a-decline-after-the-ack",
       [](scene& s) {
         s.active();
         return s.tell(s.frame(event_kind::decline));
       },
       rejected, why::already_acked, permanent},
      {"renew.newer", "a-renew",
       [](scene& s) {
         s.active();
         return s.tell(s.renew(1));
       },
       accepted, why::renewed, ok},
      {"renew.duplicate", "renewed-again",
       [](scene& s) {
         s.active();
         s.told(s.renew(5));
         return s.tell(s.renew(5));
       },
       ignored, why::duplicate_renew, ok},
      {"renew.stale", "an-older-renew",
       [](scene& s) {
         s.active();
         s.told(s.renew(5));
         return s.tell(s.renew(4));
       },
       ignored, why::stale_sequence, ok},
      {"renew.capped", "a-renew-beyond-the-lifetime",
       [](scene& s) {
         s.active({{"max_lifetime_ms", 3'600'000}});
         s.let_time_pass();
         return s.tell(s.renew(1));
       },
       rejected, why::max_lifetime_reached, permanent},
      {"renew.capped", "a-renew-beyond-the-cancel",
       [](scene& s) {
         s.cancel_requested({{"cancel_grace_ms", ten_minutes_ms}});
         return s.tell(s.renew(1));
       },
       rejected, why::cancel_pending, permanent},
      {"progress.newer", "progress",
       [](scene& s) {
         s.active();
         return s.tell(s.progress(1, "a"));
       },
       accepted, why::progress_recorded, ok},
      {"progress.cancelled", "progress-after-a-cancel",
       [](scene& s) {
         s.cancel_requested();
         return s.tell(s.progress(1, "a"));
       },
       ignored, why::progress_after_cancel, ok},
      {"progress.duplicate", "the-same-progress-again",
       [](scene& s) {
         s.active();
         s.told(s.progress(3, "a"));
         return s.tell(s.progress(3, "a"));
       },
       ignored, why::duplicate_progress, ok},
      {"progress.conflict", "other-progress-of-the-same-sequence",
       [](scene& s) {
         s.active();
         s.told(s.progress(3, "a"));
         return s.tell(s.progress(3, "b"));
       },
       rejected, why::sequence_conflict, permanent},
      {"progress.late", "older-progress",
       [](scene& s) {
         s.active();
         s.told(s.progress(3, "a"));
         return s.tell(s.progress(2, "b"));
       },
       ignored, why::late_progress, ok},
      {"cancel_ack.unasked", "nobody-asked-for-a-cancel",
       [](scene& s) {
         s.active();
         return s.tell(s.frame(event_kind::cancel_ack));
       },
       rejected, why::cancel_not_requested, permanent},
      {"cancel_ack.first", "the-cancel-is-acknowledged",
       [](scene& s) {
         s.cancel_requested();
         return s.tell(s.frame(event_kind::cancel_ack));
       },
       accepted, why::cancel_acknowledged, ok},
      {"cancel_ack.duplicate", "the-cancel-is-acknowledged-again",
       [](scene& s) {
         s.cancel_requested();
         s.told(s.frame(event_kind::cancel_ack));
         return s.tell(s.frame(event_kind::cancel_ack));
       },
       ignored, why::duplicate_cancel_ack, ok},
      {"release.job", "handed-back",
       [](scene& s) {
         s.active();
         return s.tell(s.frame(event_kind::release));
       },
       accepted, why::released, ok},
      {"release.exhausted", "handed-back-once-too-often",
       [](scene& s) {
         s.active({{"max_losses", 1}});
         return s.tell(s.frame(event_kind::release));
       },
       accepted, why::losses_exhausted, ok},
      {"release.cancelled", "handed-back-under-a-cancel",
       [](scene& s) {
         s.cancel_requested();
         return s.tell(s.frame(event_kind::release));
       },
       accepted, why::cancel_completed, ok},
      {"release.unreconciled", "handed-back-under-a-cancel-with-an-older-generation-open",
       [](scene& s) {
         s.second_active_first_unproven();
         s.operate("cancel");
         return s.tell(s.frame(event_kind::release, 2));
       },
       accepted, why::cancel_unreconciled, ok},
      {"result.cancel_unasked", "cancelled-without-a-cancel",
       [](scene& s) {
         s.active();
         return s.tell(s.result(outcome::cancelled));
       },
       rejected, why::cancel_not_requested, permanent},
      {"result.success", "success",
       [](scene& s) {
         s.active();
         return s.tell(s.result(outcome::success));
       },
       accepted, why::completed, ok},
      {"result.success", "success-under-a-cancel",
       [](scene& s) {
         s.cancel_requested();
         return s.tell(s.result(outcome::success));
       },
       accepted, why::completed_despite_cancel, ok},
      {"result.cancelled", "cancelled",
       [](scene& s) {
         s.cancel_requested();
         return s.tell(s.result(outcome::cancelled));
       },
       accepted, why::cancel_completed, ok},
      {"result.unreconciled", "cancelled-with-an-older-generation-open",
       [](scene& s) {
         s.second_active_first_unproven();
         s.operate("cancel");
         return s.tell(s.result(outcome::cancelled, "", false, 2));
       },
       accepted, why::cancel_unreconciled, ok},
      {"result.retry", "failed-for-now",
       [](scene& s) {
         s.active();
         return s.tell(s.result(outcome::failed, "", true));
       },
       accepted, why::retry_scheduled, ok},
      {"result.exhausted", "failed-for-the-last-time",
       [](scene& s) {
         s.active({{"max_attempts", 1}});
         return s.tell(s.result(outcome::failed, "", true));
       },
       accepted, why::attempts_exhausted, ok},
      {"result.failed", "failed-for-good",
       [](scene& s) {
         s.active();
         return s.tell(s.result(outcome::failed, "no"));
       },
       accepted, why::job_failed, ok},
      {"result.failed", "failed-under-a-cancel",
       [](scene& s) {
         s.cancel_requested();
         return s.tell(s.result(outcome::failed, "no", true));
       },
       accepted, why::job_failed, ok},
  };
}

}  // namespace leasehold::e2e
