#include "src/system_clock.hpp"

#include <algorithm>
#include <array>
#include <ctime>
#include <fstream>
#include <string_view>
#include <utility>

namespace leasehold::server {
namespace {

std::int64_t read_ms(clockid_t which) {
  timespec at{};
  clock_gettime(which, &at);
  return std::int64_t{at.tv_sec} * 1000 + at.tv_nsec / 1'000'000;
}

std::string read_boot_id() {
  std::ifstream file{"/proc/sys/kernel/random/boot_id"};
  std::string id;
  std::getline(file, id);
  return id;
}

/// "2026-03-01T12:00:00Z".
std::string utc(std::int64_t ms) {
  const auto seconds = static_cast<std::time_t>(ms / 1000);
  std::tm parts{};
  std::array<char, 64> text{};
  if (gmtime_r(&seconds, &parts) == nullptr) return std::to_string(ms) + " ms";
  return {text.data(), std::strftime(text.data(), text.size(), "%FT%TZ", &parts)};
}

std::string seconds(std::int64_t ms) { return std::to_string(ms / 1000) + " s"; }

clock_refused refuse(const actors::clock_anchor& stored, std::int64_t wall_ms,
                     protocol::duration max_downtime) {
  const std::int64_t elapsed = wall_ms - stored.wall_ms;
  std::string what = "The wall clock says " + utc(wall_ms) + ", ";
  if (elapsed < 0) {
    what +=
        seconds(-elapsed) + " before the last commit of the store (" + utc(stored.wall_ms) + ")";
  } else {
    what += seconds(elapsed) + " after the last commit of the store (" + utc(stored.wall_ms) +
            "), more than max_downtime (" + seconds(max_downtime.ms) + ")";
  }
  what += "; set the clock right, or start with --accept-clock=wall to accept ";
  what += elapsed < 0 ? "this clock from now on (no time counts as passed)"
                      : "that this much time has passed";
  what += ", or with --accept-clock=anchor to go on as if no time had passed.";
  return {what};
}

}  // namespace

clock_sources machine_clocks() {
  return {[] { return read_ms(CLOCK_BOOTTIME); }, [] { return read_ms(CLOCK_REALTIME); },
          read_boot_id()};
}

std::string_view word(clock_basis basis) noexcept {
  switch (basis) {
    case clock_basis::boot:
      return "boot";
    case clock_basis::wall:
      return "wall";
    case clock_basis::operator_:
      return "operator";
  }
  return "";
}

std::variant<std::shared_ptr<system_clock>, clock_refused> system_clock::start(
    clock_sources sources, const std::optional<actors::clock_anchor>& stored,
    protocol::duration max_downtime, accepted_clock accepted, protocol::duration behind) {
  const std::int64_t boottime_ms = sources.boottime_ms();
  const std::int64_t wall_ms = sources.wall_ms();
  const auto begin_at = [&](std::int64_t coordinator_ms, clock_basis basis) {
    const std::int64_t now_ms = std::clamp(coordinator_ms, std::int64_t{1}, protocol::max_number);
    return std::shared_ptr<system_clock>{
        new system_clock{std::move(sources), now_ms - boottime_ms, basis}};
  };

  if (!stored) return begin_at(wall_ms, clock_basis::wall);
  const std::int64_t stopped_ms = stored->coordinator_time.ms;
  // A boot time before the stored one is not of the same clock, whatever the id says (containers).
  if (!sources.boot_id.empty() && sources.boot_id == stored->boot_id &&
      boottime_ms >= stored->boottime_ms) {
    return begin_at(stopped_ms + (boottime_ms - stored->boottime_ms), clock_basis::boot);
  }
  const std::int64_t elapsed_ms = wall_ms - stored->wall_ms;
  if (elapsed_ms >= -behind.ms && elapsed_ms <= max_downtime.ms) {
    return begin_at(stopped_ms + std::max(elapsed_ms, std::int64_t{0}), clock_basis::wall);
  }
  switch (accepted) {
    case accepted_clock::none:
      break;
    case accepted_clock::wall:
      return begin_at(stopped_ms + std::max(elapsed_ms, std::int64_t{0}), clock_basis::operator_);
    case accepted_clock::anchor:
      return begin_at(stopped_ms, clock_basis::operator_);
  }
  return refuse(*stored, wall_ms, max_downtime);
}

system_clock::system_clock(clock_sources sources, std::int64_t origin_ms, clock_basis basis)
    : sources_(std::move(sources)), origin_ms_(origin_ms), basis_(basis) {}

protocol::instant system_clock::now() const {
  const std::int64_t read = origin_ms_ + sources_.boottime_ms();
  std::int64_t newest = newest_ms_.load(std::memory_order_relaxed);
  while (newest < read && !newest_ms_.compare_exchange_weak(newest, read)) {
  }
  return {std::max(newest, read)};
}

actors::clock_anchor system_clock::anchor() const {
  // Coordinator time from the same reading as the boot time: a start of the same boot is exact.
  const std::int64_t boottime_ms = sources_.boottime_ms();
  const protocol::instant at{std::max(origin_ms_ + boottime_ms, newest_ms_.load())};
  return {sources_.boot_id, at.ms - origin_ms_, sources_.wall_ms(), at};
}

std::int64_t system_clock::boottime_of(protocol::instant at) const noexcept {
  return at.ms - origin_ms_;
}

}  // namespace leasehold::server
