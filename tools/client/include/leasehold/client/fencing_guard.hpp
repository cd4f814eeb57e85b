// The check that makes a fencing token worth something, for a service in C++: it stands in front of
// what a lock protects, keeps the highest token that it has seen of each key and refuses lower
// ones. Needs the standard library only.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace leasehold::client {

/// What becomes of a token. Only `accepted` lets a write through.
enum class fence_verdict : std::uint8_t {
  accepted,  ///< no higher token of the key was seen
  stale,     ///< a higher one was: the lock has gone to another holder
  full,      ///< the key is new, and there are as many keys as the guard may keep
  invalid,   ///< no key, one that is too long, or a token below 1
};

/// How much a guard may keep: `keys` times `key_bytes` and about 150 bytes each.
struct fence_limits {
  std::size_t keys = 65'536;    ///< 0: none, every write is refused
  std::size_t key_bytes = 256;  ///< the lease id of a lock (k:...) has 66
};

/// Takes writers in turn, one at a time of each key, and refuses those whose token is not the
/// highest seen. Any thread.
///
/// An old holder is refused from the moment that the new one's token has come here, by write() or
/// by raise(): let a holder send its token before its first work. Nobody knows here that a term has
/// ended: an expired holder is accepted as long as no successor has come. All of a key's writes
/// must pass through one guard.
///
/// Memory is bounded, and no token is dropped to make room for another: a guard that has forgotten
/// a key would accept its oldest holder. A new key beyond the limit is refused as `full`; forget()
/// frees what is known to be over. Where there is no telling how many keys will come, keep the
/// tokens in a database (share/leasehold/sql).
///
/// Tokens are kept in memory alone. After a start of the service raise() each key that is about to
/// be written to `observed` of GET /v1/fences/{key}?observed, or to what the service has stored
/// itself; without that a holder that was refused before the start is accepted until its successor
/// writes.
class fencing_guard {
 public:
  explicit fencing_guard(fence_limits limits = {}) : limits_(limits) {}
  fencing_guard(const fencing_guard&) = delete;
  fencing_guard& operator=(const fencing_guard&) = delete;

  /// Runs `work` if the token is accepted, and not before every write of the key that was accepted
  /// earlier has returned: an older write is over before a newer one begins, and none begins after
  /// it. The token counts from then on, also where `work` throws, which goes on to the caller.
  /// `work` must not use the guard.
  template <class Work>
  fence_verdict write(std::string_view key, std::int64_t token, Work&& work) {
    if (!is_valid(key, token)) return fence_verdict::invalid;
    for (;;) {
      const std::shared_ptr<fence> found = find_or_make(key);
      if (!found) return fence_verdict::full;
      const std::lock_guard turn(found->turn);
      if (found->forgotten) continue;
      if (token < found->highest) return fence_verdict::stale;
      found->highest = token;
      std::invoke(std::forward<Work>(work));
      return fence_verdict::accepted;
    }
  }

  /// Tells a token without a write. When it returns, no write with a lower one runs or will.
  fence_verdict raise(std::string_view key, std::int64_t token) {
    return write(key, token, [] {});
  }

  /// The highest token seen; 0: none. Does not wait for a write that runs.
  [[nodiscard]] std::int64_t highest(std::string_view key) const {
    const auto found = find(key);
    return found ? found->highest.load() : 0;
  }

  /// How many keys are kept.
  [[nodiscard]] std::size_t size() const {
    const std::shared_lock reading(fences_mutex_);
    return fences_.size();
  }

  /// Forgets a key once its writes have returned; false: it was not kept. Only for a key that
  /// nobody will ever write again, such as that of a target that is gone: from then on any token is
  /// accepted.
  bool forget(std::string_view key) {
    const auto found = find(key);
    if (!found) return false;
    const std::lock_guard turn(found->turn);
    if (found->forgotten) return false;
    found->forgotten = true;
    const std::lock_guard changing(fences_mutex_);
    fences_.erase(fences_.find(key));
    return true;
  }

 private:
  struct fence {
    std::mutex turn;
    std::atomic<std::int64_t> highest{0};  ///< written under `turn`
    bool forgotten = false;                ///< under `turn`: no longer among fences_
  };
  struct text_hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept {
      return std::hash<std::string_view>{}(text);
    }
  };

  [[nodiscard]] bool is_valid(std::string_view key, std::int64_t token) const {
    return !key.empty() && key.size() <= limits_.key_bytes && token > 0;
  }

  [[nodiscard]] std::shared_ptr<fence> find(std::string_view key) const {
    const std::shared_lock reading(fences_mutex_);
    const auto at = fences_.find(key);
    return at == fences_.end() ? nullptr : at->second;
  }

  std::shared_ptr<fence> find_or_make(std::string_view key) {
    if (auto found = find(key)) return found;
    const std::lock_guard changing(fences_mutex_);
    if (const auto at = fences_.find(key); at != fences_.end()) return at->second;
    if (fences_.size() >= limits_.keys) return nullptr;
    return fences_.emplace(std::string(key), std::make_shared<fence>()).first->second;
  }

  const fence_limits limits_;
  mutable std::shared_mutex fences_mutex_;  ///< taken after a fence's turn, never before it
  std::unordered_map<std::string, std::shared_ptr<fence>, text_hash, std::equal_to<>> fences_;
};

}  // namespace leasehold::client
