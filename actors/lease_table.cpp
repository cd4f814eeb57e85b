#include "actors/lease_table.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <bit>
#include <compare>

namespace leasehold::actors {

namespace {

/// Tenants are kept once, so that equal ones are mostly the same.
std::strong_ordering order_of(const lease_entry& a, const lease_entry& b) noexcept {
  if (&a.tenant() != &b.tenant()) {
    if (const auto tenants = a.tenant() <=> b.tenant(); tenants != 0) return tenants;
  }
  return a.lease() <=> b.lease();
}

std::strong_ordering order_of(const lease_entry& a, const protocol::lease_key& b) noexcept {
  if (const auto tenants = a.tenant() <=> b.tenant; tenants != 0) return tenants;
  return a.lease() <=> std::string_view(b.lease.value);
}

}  // namespace

bool lease_table::by_key::operator()(const lease_entry& a, const lease_entry& b) const noexcept {
  return order_of(a, b) < 0;
}

bool lease_table::by_key::operator()(const protocol::lease_key& a,
                                     const lease_entry& b) const noexcept {
  return order_of(b, a) > 0;
}

bool lease_table::by_key::operator()(const lease_entry& a,
                                     const protocol::lease_key& b) const noexcept {
  return order_of(a, b) < 0;
}

bool lease_table::same_lease::operator()(const indexed& a, const wanted& b) const noexcept {
  if (a.hash != b.hash) return false;
  const auto& entry = *table->slots_[a.slot];
  return entry.lease() == b.lease && entry.tenant().value == b.tenant;
}

// Clients choose the ids. Where the table stands differs at every start, so that none of them can
// choose ids that all hash alike.
lease_table::lease_table()
    : index_(0, hash_of_indexed{}, same_lease{this}), seed_(std::bit_cast<std::uintptr_t>(this)) {}

lease_table::wanted lease_table::hashed(std::string_view tenant,
                                        std::string_view lease) const noexcept {
  const auto of_tenant = XXH3_64bits_withSeed(tenant.data(), tenant.size(), seed_);
  const auto hash = XXH3_64bits_withSeed(lease.data(), lease.size(), of_tenant);
  return {static_cast<std::uint32_t>(hash), tenant, lease};
}

lease_entry* lease_table::find(std::uint64_t mark) const {
  const auto slot = slot_of(mark);
  if (slot >= slots_.size()) return nullptr;
  auto* entry = slots_[slot].get();
  return entry != nullptr && entry->mark == mark ? entry : nullptr;
}

lease_entry* lease_table::find(const protocol::lease_key& key) const {
  const auto it = index_.find(hashed(key.tenant.value, key.lease.value));
  return it == index_.end() ? nullptr : slots_[it->slot].get();
}

lease_entry& lease_table::of(const protocol::lease_key& key) {
  const auto hash_and_key = hashed(key.tenant.value, key.lease.value);
  if (const auto it = index_.find(hash_and_key); it != index_.end()) return *slots_[it->slot];
  std::uint64_t mark = slots_.size();
  if (free_.empty()) {
    slots_.emplace_back();
  } else {
    mark = free_.back();
    free_.pop_back();
  }
  auto& slot = slots_[slot_of(mark)];
  slot = std::make_unique<lease_entry>(mark, *tenants_.insert(key.tenant).first, key.lease);
  index_.insert(indexed{hash_and_key.hash, static_cast<std::uint32_t>(slot_of(mark))});
  ordered_.insert(*slot);
  return *slot;
}

void lease_table::erase(lease_entry& entry) {
  constexpr std::uint64_t another_use = std::uint64_t{1} << slot_bits;
  const auto mark = entry.mark;
  index_.erase(index_.find(hashed(entry.tenant().value, entry.lease())));
  ordered_.erase(ordered_.iterator_to(entry));
  slots_[slot_of(mark)].reset();
  free_.push_back(mark + another_use);
}

lease_table::ordered::iterator lease_table::after(const protocol::lease_key& key) {
  return ordered_.upper_bound(key, by_key{});
}

lease_table::ordered::const_iterator lease_table::after(const protocol::lease_key& key) const {
  return ordered_.upper_bound(key, by_key{});
}

}  // namespace leasehold::actors
