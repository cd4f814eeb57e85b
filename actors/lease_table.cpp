#include "actors/lease_table.hpp"

namespace leasehold::actors {

lease_entry* lease_table::find(std::uint64_t mark) const {
  const auto slot = slot_of(mark);
  if (slot >= slots_.size()) return nullptr;
  auto* entry = slots_[slot].get();
  return entry != nullptr && entry->mark == mark ? entry : nullptr;
}

lease_entry* lease_table::find(const protocol::lease_key& key) const {
  const auto it = ordered_.find(key);
  return it == ordered_.end() ? nullptr : *it;
}

lease_entry& lease_table::of(const protocol::lease_key& key) {
  const auto it = ordered_.lower_bound(key);
  if (it != ordered_.end() && (*it)->key == key) return **it;
  std::uint64_t mark = slots_.size();
  if (free_.empty()) {
    slots_.emplace_back();
  } else {
    mark = free_.back();
    free_.pop_back();
  }
  auto& slot = slots_[slot_of(mark)];
  slot = std::make_unique<lease_entry>(mark, key);
  ordered_.insert(it, slot.get());
  return *slot;
}

void lease_table::erase(const lease_entry& entry) {
  constexpr std::uint64_t another_use = std::uint64_t{1} << slot_bits;
  const auto mark = entry.mark;
  ordered_.erase(ordered_.find(entry.key));
  slots_[slot_of(mark)].reset();
  free_.push_back(mark + another_use);
}

}  // namespace leasehold::actors
