// The units of the protocol: an id, a count and a point in time each have a type of their own, so
// that no two of them can be mixed up.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>

namespace leasehold::protocol {

/// A point on the coordinator's clock, in ms. 0 means "not set" wherever a field allows that [L7].
struct instant {
  std::int64_t ms = 0;
  friend constexpr auto operator<=>(instant, instant) = default;
  constexpr explicit operator bool() const noexcept { return ms != 0; }
};

/// A length of time in ms; never negative in a valid policy.
struct duration {
  std::int64_t ms = 0;
  friend constexpr auto operator<=>(duration, duration) = default;
};

/// The latest instant that arithmetic can produce: JSON numbers stay exact up to 2^53 - 1.
inline constexpr std::int64_t max_number = (std::int64_t{1} << 53) - 1;

/// Saturates at max_number instead of overflowing; a frame may name any 64-bit number.
constexpr instant operator+(instant at, duration by) noexcept {
  if (by.ms > 0 && at.ms > max_number - by.ms) return instant{max_number};
  if (by.ms < 0 && at.ms < std::numeric_limits<std::int64_t>::min() - by.ms) {
    return instant{std::numeric_limits<std::int64_t>::min()};
  }
  return instant{at.ms + by.ms};
}

constexpr instant operator-(instant at, duration by) noexcept { return at + duration{-by.ms}; }

constexpr instant earlier(instant a, instant b) noexcept { return a < b ? a : b; }
constexpr instant later(instant a, instant b) noexcept { return a < b ? b : a; }

/// Raised by each grant of a lease; the fencing token. 0: never granted. At most 2^53 - 1.
struct generation {
  std::int64_t value = 0;
  friend constexpr auto operator<=>(generation, generation) = default;
};

/// Orders the renews, and apart from them the progress frames, of one generation. Valid from 1.
struct sequence {
  std::int64_t value = 0;
  friend constexpr auto operator<=>(sequence, sequence) = default;
};

/// Number of an evidence row in its store, from 1, without gaps. 0: no row.
struct row_number {
  std::int64_t value = 0;
  friend constexpr auto operator<=>(row_number, row_number) = default;
};

/// Text with a meaning of its own; two kinds of text never share a type.
template <class Tag>
struct text_id {
  std::string value;
  text_id() = default;
  explicit text_id(std::string text) : value(std::move(text)) {}
  explicit text_id(std::string_view text) : value(text) {}
  explicit text_id(const char* text) : value(text) {}
  friend auto operator<=>(const text_id&, const text_id&) = default;
  [[nodiscard]] bool empty() const noexcept { return value.empty(); }
};

/// Names a lease within its tenant: 1 to 128 of `A-Za-z0-9._:-`.
using lease_id = text_id<struct lease_id_tag>;
/// Names a job within its tenant; a job's lease_id is its job id.
using job_id = text_id<struct job_id_tag>;
/// `principal/incarnation` of a worker, or the owner of a lock; at most 200 bytes.
using holder = text_id<struct holder_tag>;
/// Makes an operation idempotent; at most 64 bytes. Empty: none.
using request_id = text_id<struct request_id_tag>;

}  // namespace leasehold::protocol

template <class Tag>
struct std::hash<leasehold::protocol::text_id<Tag>> {
  std::size_t operator()(const leasehold::protocol::text_id<Tag>& id) const noexcept {
    return std::hash<std::string>{}(id.value);
  }
};
