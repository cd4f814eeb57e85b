// The leases of a shard actor by their mark and by their key. A mark names a lease while it is
// known; it is never that of another one.
#pragma once

#include <boost/intrusive/set.hpp>
#include <boost/unordered/unordered_flat_set.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string_view>
#include <vector>

#include "actors/lease_entry.hpp"

namespace leasehold::actors {

class lease_table {
 public:
  struct by_key {
    bool operator()(const lease_entry& a, const lease_entry& b) const noexcept;
    bool operator()(const protocol::lease_key& a, const lease_entry& b) const noexcept;
    bool operator()(const lease_entry& a, const protocol::lease_key& b) const noexcept;
  };
  using ordered = boost::intrusive::set<lease_entry, boost::intrusive::compare<by_key>,
                                        boost::intrusive::constant_time_size<false>>;

  lease_table();
  lease_table(const lease_table&) = delete;
  lease_table& operator=(const lease_table&) = delete;

  /// Null when there is none any more.
  [[nodiscard]] lease_entry* find(std::uint64_t mark) const;
  [[nodiscard]] lease_entry* find(const protocol::lease_key& key) const;
  /// The one of this mark, which is there.
  [[nodiscard]] lease_entry& at(std::uint64_t mark) const { return *slots_[slot_of(mark)]; }
  /// Makes it when it is not there.
  lease_entry& of(const protocol::lease_key& key);
  void erase(lease_entry& entry);
  [[nodiscard]] std::size_t size() const noexcept { return index_.size(); }
  /// In the order of their keys.
  [[nodiscard]] ordered& all() noexcept { return ordered_; }
  [[nodiscard]] const ordered& all() const noexcept { return ordered_; }
  /// The first one behind this key, which need not be there.
  [[nodiscard]] ordered::iterator after(const protocol::lease_key& key);
  [[nodiscard]] ordered::const_iterator after(const protocol::lease_key& key) const;

 private:
  // The lower half of a mark is its slot, the upper half how often the slot was used before.
  static constexpr unsigned slot_bits = 32;
  static std::size_t slot_of(std::uint64_t mark) { return mark & 0xffff'ffffU; }

  /// The hash is kept, so that the index grows without a look at every lease.
  struct indexed {
    std::uint32_t hash = 0;
    std::uint32_t slot = 0;
  };
  struct wanted {
    std::uint32_t hash = 0;
    std::string_view tenant;
    std::string_view lease;
  };
  struct hash_of_indexed {
    using is_transparent = void;
    std::size_t operator()(const indexed& each) const noexcept { return each.hash; }
    std::size_t operator()(const wanted& key) const noexcept { return key.hash; }
  };
  struct same_lease {
    using is_transparent = void;
    const lease_table* table;
    bool operator()(const indexed& a, const indexed& b) const noexcept { return a.slot == b.slot; }
    bool operator()(const indexed& a, const wanted& b) const noexcept;
    bool operator()(const wanted& a, const indexed& b) const noexcept { return (*this)(b, a); }
  };
  [[nodiscard]] wanted hashed(std::string_view tenant, std::string_view lease) const noexcept;

  std::vector<std::unique_ptr<lease_entry>> slots_;
  std::vector<std::uint64_t> free_;        ///< the next mark of each slot without an entry
  std::set<protocol::tenant_id> tenants_;  ///< that entries point to
  boost::unordered_flat_set<indexed, hash_of_indexed, same_lease> index_;
  ordered ordered_;
  std::uint64_t seed_;
};

}  // namespace leasehold::actors
