// A set of 128-bit hashes in 16 bytes each: what has been seen, without keeping it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace leasehold {

struct hash_128 {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  friend bool operator==(const hash_128&, const hash_128&) = default;
};

/// Open addressing; 0 marks a free place, so a hash of 0 is taken for 1.
class hash_set {
 public:
  hash_set() : places_(std::size_t{1} << 16) {}

  /// False when it was there before.
  bool insert(hash_128 hash) {
    if (hash == hash_128{}) hash.low = 1;
    if ((size_ + 1) * 4 > places_.size() * 3) grow();
    hash_128& place = find(places_, hash);
    if (place == hash) return false;
    place = hash;
    ++size_;
    return true;
  }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  static hash_128& find(std::vector<hash_128>& places, hash_128 hash) {
    const std::size_t mask = places.size() - 1;
    std::size_t at = static_cast<std::size_t>(hash.low) & mask;
    while (places[at] != hash_128{} && places[at] != hash) at = (at + 1) & mask;
    return places[at];
  }

  void grow() {
    std::vector<hash_128> larger(places_.size() * 2);
    for (const hash_128 hash : places_) {
      if (hash != hash_128{}) find(larger, hash) = hash;
    }
    places_ = std::move(larger);
  }

  std::vector<hash_128> places_;
  std::size_t size_ = 0;
};

}  // namespace leasehold
