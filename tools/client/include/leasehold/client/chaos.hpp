// A channel that reorders, repeats, delays and drops frames on purpose, the same way for the same
// seed. It stands between a session and its socket, one for each direction.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "leasehold/client/notice.hpp"

namespace leasehold::client {

/// What happens to frames; chances are from 0 to 1.
struct chaos_options {
  double reorder = 0;  ///< kept back by up to reorder_window more
  double dup = 0;      ///< goes through twice, each with a delay of its own
  double drop = 0;     ///< never arrives
  protocol::duration delay_least{0};
  protocol::duration delay_most{0};
  protocol::duration reorder_window{50};
  std::uint64_t seed = 1;
  friend bool operator==(const chaos_options&, const chaos_options&) = default;
};

/// Reads "reorder=0.3,dup=0.1,drop=0.05,delay=5..80ms,seed=7"; keys may be left out, in any order.
/// Yields a sentence that says what is wrong instead.
std::variant<chaos_options, std::string> parse_chaos(std::string_view text);
/// The text that parse_chaos reads: print it, so that a run can be repeated.
std::string to_text(const chaos_options& options);

/// How many frames met which fate.
struct chaos_counts {
  std::int64_t frames = 0, reordered = 0, repeated = 0, dropped = 0;
};

/// Decides the fate of each frame, in the order in which they are given.
class chaos_dice {
 public:
  /// `stream` keeps two channels with the same seed apart.
  chaos_dice(const chaos_options& options, std::uint64_t stream);
  /// When each copy of the next frame arrives; none: it is dropped.
  std::vector<local_time> throw_for(local_time now);
  [[nodiscard]] const chaos_counts& counts() const noexcept { return counts_; }

 private:
  [[nodiscard]] bool chance(double of);
  [[nodiscard]] protocol::duration between(protocol::duration least, protocol::duration most);

  chaos_options options_;
  std::mt19937_64 random_;
  chaos_counts counts_;
};

/// Frames on their way.
template <class Frame>
class chaos_channel {
 public:
  chaos_channel(const chaos_options& options, std::uint64_t stream) : dice_(options, stream) {}

  void push(local_time now, const Frame& frame) {
    for (const auto at : dice_.throw_for(now)) on_the_way_.emplace(at, frame);
  }
  /// What has arrived by now, in order of arrival.
  std::vector<Frame> take(local_time now) {
    std::vector<Frame> arrived;
    const auto end = on_the_way_.upper_bound(now);
    for (auto at = on_the_way_.begin(); at != end; ++at) arrived.push_back(std::move(at->second));
    on_the_way_.erase(on_the_way_.begin(), end);
    return arrived;
  }
  [[nodiscard]] std::optional<local_time> next() const {
    if (on_the_way_.empty()) return std::nullopt;
    return on_the_way_.begin()->first;
  }
  /// The connection is gone, and what was on its way with it.
  void clear() { on_the_way_.clear(); }
  [[nodiscard]] const chaos_counts& counts() const noexcept { return dice_.counts(); }

 private:
  chaos_dice dice_;
  std::multimap<local_time, Frame> on_the_way_;
};

}  // namespace leasehold::client
