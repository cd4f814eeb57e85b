#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "leasehold/actors/dispatch.hpp"
#include "leasehold/actors/ports.hpp"

namespace leasehold::actors {

namespace {

using protocol::duration;

struct named_profile {
  std::string_view name;
  dispatch_profile what;
};

constexpr std::array profiles{
    // One at a time on a slow disk.
    named_profile{"edge", {duration{5'000}, 1, 16, duration{15'000}}},
    named_profile{"standalone", {duration{1'000}, 32, 4, duration{5'000}}},
    // Several share the work, so each takes more at once and looks more often.
    named_profile{"cluster", {duration{250}, 64, 8, duration{5'000}}},
};

/// How often a running cycle is looked after.
constexpr duration look_pause{500};

}  // namespace

std::optional<dispatch_profile> dispatch_profile_of(std::string_view name) {
  const auto found = std::ranges::find(profiles, name, &named_profile::name);
  if (found == profiles.end()) return std::nullopt;
  return found->what;
}

struct dispatch_runner::parts : std::enable_shared_from_this<parts> {
  enum class purpose : std::uint8_t { next_cycle, look, stop_bound };

  explicit parts(dispatch_runner_options options) : how(std::move(options)) {}

  /// One timer: arming it for another purpose makes what it was armed for before come to nothing.
  void arm(duration pause, purpose what) {
    how.timer->arm(how.clock->now() + pause,
                   [strand = how.strand, weak = weak_from_this(), armed = ++arming, what] {
                     strand([weak, armed, what] {
                       const auto self = weak.lock();
                       if (self && self->arming == armed) self->due(what);
                     });
                   });
  }
  void disarm() {
    ++arming;
    how.timer->disarm();
  }

  void due(purpose what) {
    switch (what) {
      case purpose::next_cycle:
        return begin();
      case purpose::look:
        arm(look_pause, purpose::look);
        return how.supervisor->look_after();
      case purpose::stop_bound:
        return answer_stops(false);
    }
  }

  void begin() {
    is_in_cycle = true;
    is_hurried = false;
    arm(look_pause, purpose::look);
    how.supervisor->run_cycle([weak = weak_from_this()](const dispatch_cycle& did) {
      if (const auto self = weak.lock()) self->take(did);
    });
  }

  void take(const dispatch_cycle& did) {
    is_in_cycle = false;
    if (is_started) {
      arm(is_hurried ? duration{0} : how.profile.cadence, purpose::next_cycle);
    } else {
      disarm();
      answer_stops(true);
    }
    if (how.on_cycle) how.on_cycle(did);
  }

  void answer_stops(bool has_ended) {
    for (const auto& done : std::exchange(stops, {})) done(has_ended);
  }

  dispatch_runner_options how;
  bool is_started = false;
  bool is_in_cycle = false;
  bool is_hurried = false;
  std::int64_t arming = 0;  ///< tells the newest arming from those that it replaced
  std::vector<std::function<void(bool)>> stops;
};

dispatch_runner::dispatch_runner(dispatch_runner_options options)
    : parts_(std::make_shared<parts>(std::move(options))) {}

dispatch_runner::~dispatch_runner() { parts_->disarm(); }

bool dispatch_runner::start() {
  if (parts_->is_started) return false;
  if (parts_->is_in_cycle) {
    // A controller that never answers must not refuse every start: its claim ends.
    parts_->how.supervisor->look_after();
    return false;
  }
  parts_->is_started = true;
  parts_->is_hurried = true;
  parts_->arm(duration{0}, parts::purpose::next_cycle);
  return true;
}

void dispatch_runner::hurry() {
  // Arming again what is due already would put it off.
  if (!parts_->is_started || std::exchange(parts_->is_hurried, true)) return;
  if (!parts_->is_in_cycle) parts_->arm(duration{0}, parts::purpose::next_cycle);
}

void dispatch_runner::stop(std::function<void(bool)> done) {
  parts_->is_started = false;
  parts_->is_hurried = false;
  parts_->disarm();
  if (!parts_->is_in_cycle) return done(true);
  parts_->stops.push_back(std::move(done));
  parts_->arm(parts_->how.profile.stop_wait, parts::purpose::stop_bound);
  parts_->how.supervisor->end_early();
}

}  // namespace leasehold::actors
