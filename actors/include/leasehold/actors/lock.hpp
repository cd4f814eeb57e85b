// A target lock beside its lease: what its acquirer gave, and what names it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "leasehold/protocol/evidence.hpp"
#include "leasehold/protocol/frame.hpp"
#include "leasehold/protocol/lock_key.hpp"

namespace leasehold::actors {

/// The generation of a job that a lock lives and dies with: once it has closed, the lock is
/// released.
struct lock_tie {
  protocol::job_id job;  ///< empty: the lock is tied to nothing
  protocol::generation gen;
  friend bool operator==(const lock_tie&, const lock_tie&) = default;
};

/// What an acquirer gives. Kept as the attachment of the acquire row; never judged by the rules.
struct lock_spec {
  protocol::lock_name name;  ///< normalised
  std::string typed;         ///< the target as it was typed
  protocol::policy policy;
  std::string execution_id;                     ///< at most 128 bytes
  std::string trace_id;                         ///< W3C traceparent, or empty
  std::map<std::string, std::string> metadata;  ///< at most 4 KiB in all
  lock_tie tie;
  friend bool operator==(const lock_spec&, const lock_spec&) = default;
};

/// Bytes of a lock_spec as attached to its acquire row (without the policy, which is a row of its
/// own), and back. Nothing when they cannot be read.
std::string encode_lock(const lock_spec& spec);
std::optional<lock_spec> decode_lock(std::string_view bytes);

/// A lock by all its names.
struct named_lock {
  protocol::lock_name name;  ///< normalised
  std::string canonical;     ///< its job_id
  protocol::lease_id lease;  ///< k: and the hex digits of the SHA-256 of its canonical key
};
/// Why a target names nothing, in one sentence.
struct unnamed_lock {
  std::string sentence;
};
/// Names a lock as people type it; any thread. The server's way is libidn2's and the like, which
/// the actors know nothing of.
using lock_naming = std::function<std::variant<named_lock, unnamed_lock>(
    const protocol::tenant_id& tenant, const protocol::lock_name& typed)>;

}  // namespace leasehold::actors
