// The leases of a shard actor by their mark and by their key. A mark names a lease while it is
// known; it is never that of another one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "actors/lease_entry.hpp"

namespace leasehold::actors {

class lease_table {
 public:
  struct by_key {
    using is_transparent = void;
    bool operator()(const lease_entry* a, const lease_entry* b) const { return a->key < b->key; }
    bool operator()(const lease_entry* a, const protocol::lease_key& b) const { return a->key < b; }
    bool operator()(const protocol::lease_key& a, const lease_entry* b) const { return a < b->key; }
  };
  using ordered = std::set<lease_entry*, by_key>;

  /// Null when there is none any more.
  [[nodiscard]] lease_entry* find(std::uint64_t mark) const;
  [[nodiscard]] lease_entry* find(const protocol::lease_key& key) const;
  /// The one of this mark, which is there.
  [[nodiscard]] lease_entry& at(std::uint64_t mark) const { return *slots_[slot_of(mark)]; }
  /// Makes it when it is not there.
  lease_entry& of(const protocol::lease_key& key);
  void erase(const lease_entry& entry);
  /// In the order of their keys.
  [[nodiscard]] const ordered& all() const noexcept { return ordered_; }

 private:
  // The lower half of a mark is its slot, the upper half how often the slot was used before.
  static constexpr unsigned slot_bits = 32;
  static std::size_t slot_of(std::uint64_t mark) { return mark & 0xffff'ffffU; }

  std::vector<std::unique_ptr<lease_entry>> slots_;
  std::vector<std::uint64_t> free_;  ///< the next mark of each slot without an entry
  ordered ordered_;
};

}  // namespace leasehold::actors
