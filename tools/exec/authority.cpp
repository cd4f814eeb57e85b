#include "tools/exec/authority.hpp"

#include <algorithm>

namespace leasehold::tools {

using std::chrono::milliseconds;

namespace {

/// What was killed ends only once it is scheduled, and on a busy machine that takes a while.
constexpr milliseconds enough_to_die{400};

}  // namespace

authority first_authority(boot_time sent, const told_term& told) {
  const milliseconds length(std::max<std::int64_t>(told.expires_ms - told.from_ms, 0));
  return {sent + length, told.expires_ms};
}

authority renewed_authority(const authority& before, boot_time sent, const told_term& told) {
  auto now = first_authority(sent, told);
  if (told.expires_ms >= before.expires_ms) now.deadline = std::max(now.deadline, before.deadline);
  return now;
}

milliseconds margin_of(const term_plan& plan) {
  return std::max(plan.term / 10, std::min(plan.term / 4, enough_to_die));
}

milliseconds default_grace(milliseconds term) { return std::min(term / 5, milliseconds(5000)); }

milliseconds longest_grace(milliseconds term) {
  return std::max(term / 2 - margin_of({term, {}}), milliseconds(0));
}

boot_time kill_time(boot_time deadline, const term_plan& plan) {
  return deadline - margin_of(plan);
}

boot_time stop_time(boot_time deadline, const term_plan& plan) {
  return kill_time(deadline, plan) - plan.grace;
}

boot_time watchdog_time(boot_time deadline, const term_plan& plan) {
  return deadline - 3 * margin_of(plan) / 4;
}

}  // namespace leasehold::tools
