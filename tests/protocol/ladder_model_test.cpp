// Random streams through the library and through the plain model, with restarts in between: the
// same rows and the same lease after each step.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "tests/protocol/ladder_model.hpp"
#include "tests/protocol/property_generators.hpp"

namespace leasehold::ladder {
namespace {

using namespace protocol;

[[maybe_unused]] const int more_cases = ::setenv("RC_PARAMS", "max_success=20000 max_size=120", 0);

struct row_list final : row_sink {
  void on_row(const row& what, const record& after) override {
    rows.push_back(model_row{what.at,
                             what.kind,
                             {what.answer.decision, what.answer.reason, what.answer.flags},
                             after.state});
  }
  std::vector<model_row> rows;
};

/// The row in which a frame waits is evidence; who names a lock's job is not said by the stream.
record comparable(record lease) {
  for (deferred_frame& d : lease.deferred) d.row = row_number{};
  if (lease.kind == lease_kind::lock) lease.job = job_id{};
  return lease;
}

void recover_all(record& lease, const policy& chosen, instant now, row_sink& rows) {
  recover_due(lease, chosen, now, rows);
  recover_grace(lease, chosen, now, rows);
  expire_due(lease, chosen, now, rows);
}

void compare(const row_list& got, const std::vector<model_row>& wanted, const record& lease,
             const record& modelled) {
  for (std::size_t i = 0; i < std::max(got.rows.size(), wanted.size()); ++i) {
    if (i < got.rows.size()) RC_LOG() << "  rules " << got.rows[i] << "\n";
    if (i < wanted.size()) RC_LOG() << "  model " << wanted[i] << "\n";
  }
  RC_ASSERT(got.rows == wanted);
  RC_ASSERT(comparable(lease) == comparable(modelled));
}

void run_both(std::set<reason>& met) {
  const int number = *rc::gen::inRange(0, policy_count);
  policy chosen = policy_number(number);
  chosen.outage_expiry = number % 2 == 0 ? outage_expiry::expire : outage_expiry::extend;
  chosen.recovery_grace = duration{15};
  const auto about = *rc::gen::element(subject::job, subject::job, subject::lock);
  record lease;
  model plain(chosen);
  instant now{1'000};
  for (const choice& c : *any_stream()) {
    if (goes_on_with_another(c, lease)) {
      lease = record{};
      plain = model(chosen);
    }
    const moment next = resolve_choice(c, about, lease, now);
    now = next.at;
    row_list rows;
    if (c.request == 3 && c.flag) {
      RC_LOG() << now.ms << " recover\n";
      recover_all(lease, chosen, now, rows);
      plain.recover(now);
    } else {
      RC_LOG() << next << "\n";
      protocol::step(lease, chosen, next.what, now, rows);
      plain.step(next.what, now);
    }
    for (const model_row& r : rows.rows) met.insert(r.given.reason);
    compare(rows, plain.take_rows(), lease, plain.lease());
  }
}

/// What no stream can meet: generations end far away, and the rest is no answer of the rules to an
/// event.
bool is_out_of_reach(reason why) {
  return why == reason::generation_exhausted || why == reason::clock_anchored ||
         why == reason::history_based || why == reason::forgotten ||
         why == reason::backup_restored || why == reason::awaiting_grant ||
         why == reason::process_registered ||
         static_cast<int>(why) >= static_cast<int>(reason::holder_not_yours);
}

TEST(LadderModel, EveryStreamGivesTheSameRowsAndTheSameLease) {
  std::set<reason> met;
  EXPECT_TRUE(rc::check("the rules and the model agree", [&] { run_both(met); }));
  for (const reason_entry& entry : all_reasons()) {
    if (is_out_of_reach(entry.code)) continue;
    EXPECT_TRUE(met.contains(entry.code)) << "no stream met " << entry.word;
  }
}

}  // namespace
}  // namespace leasehold::ladder
