// The rows that follow from no rule: about the store, and those that begin, count or end the
// history of a lease.
#include <algorithm>
#include <charconv>
#include <utility>

#include "fold_mismatch.hpp"
#include "leasehold/protocol/evidence.hpp"
#include "leasehold/protocol/record_image.hpp"

namespace leasehold::protocol {

namespace {

/// How many frames a counted row stands for.
std::int64_t number_counted(std::string_view text) {
  constexpr std::string_view key = "\nnumber=";
  const auto at = text.find(key);
  std::int64_t number = 0;
  if (at == std::string_view::npos) return number;
  text.remove_prefix(at + key.size());
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

void fold::raise_floor(std::size_t shard, generation to) {
  floors_[shard] = std::max(floors_[shard], to);
  floors_known_ = floors_known_ || to.value != 0;
}

void fold::note_floor(const lease_key& key, lease_image& image) const {
  if (floors_known_) image.floor = floors_[shard_of(key)];
}

std::optional<fold::mismatch> fold::feed_store_row(const stored_row& r) {
  switch (r.input.kind) {
    case event_kind::base:
      return feed_base(r);
    case event_kind::counted:
      return feed_counted(r);
    case event_kind::forget:
      return feed_forget(r);
    case event_kind::restore:
      return feed_restore(r);
    case event_kind::policy:
      break;
    default:
      return std::nullopt;
  }
  const auto chosen = policy_from_text(r.attachment);
  if (!chosen) return mismatch{r.row, "attachment", "the policy cannot be read"};
  learn(r.policy, *chosen);
  const policy_id id = id_of(*chosen);
  if (id != r.policy) return differs(r, "policy", to_text(r.policy), to_text(id));
  return std::nullopt;
}

bool fold::is_headless(const stored_row& r) const {
  return headless_.contains(r.key) || (r.prev_row.value != 0 && r.prev_row <= anchor_);
}

std::optional<fold::mismatch> fold::feed_headless(const stored_row& r) {
  const auto [place, fresh] = headless_.try_emplace(r.key, r.row);
  const auto before = std::exchange(place->second, r.row);
  if (!fresh && r.prev_row != before) return differs(r, "prev_row", r.prev_row.value, before.value);
  return std::nullopt;
}

std::optional<fold::mismatch> fold::find_link_fault(const stored_row& r,
                                                    const lease_image& image) const {
  if (r.prev_row != image.last_row) {
    return differs(r, "prev_row", r.prev_row.value, image.last_row.value);
  }
  if (r.state_before != image.state.state) {
    return differs(r, "state_before", word(r.state_before), word(image.state.state));
  }
  return std::nullopt;
}

std::optional<fold::mismatch> fold::feed_counted(const stored_row& r) {
  const auto found = leases_.find(r.key);
  if (found == leases_.end()) return is_headless(r) ? feed_headless(r) : std::nullopt;
  auto& image = found->second;
  if (r.row.value != 0 && r.row <= image.last_row) return std::nullopt;
  auto fault = find_link_fault(r, image);
  image.last_row = r.row;
  image.last_at = r.at;
  count_reason(image.counts, r.answer.reason, number_counted(r.attachment));
  note_floor(r.key, image);
  return fault;
}

/// A base row keeps the age of its lease. Version 0.1.0 took the time of a base row for it: in its
/// stores a second base row with nothing between them says when the first one was written.
bool fold::is_age_of(const lease_image& image, const lease_image& said, instant at) {
  if (said.last_at == image.last_at) return true;
  return image.last_row == image.base_row && image.last_at < said.last_at && said.last_at <= at;
}

std::optional<fold::mismatch> fold::feed_base(const stored_row& r) {
  auto base = decode_base(r.attachment);
  if (!base) return mismatch{r.row, "attachment", "the record of the base row cannot be read"};
  std::optional<mismatch> fault;
  const auto found = leases_.find(r.key);
  if (found != leases_.end()) {
    if (r.row <= found->second.last_row) return std::nullopt;
    fault = find_link_fault(r, found->second);
    const std::string_view field = first_difference(found->second.state, base->image.state);
    if (is_age_of(found->second, base->image, r.at)) found->second.last_at = base->image.last_at;
    if (!field.empty()) {
      fault = mismatch{r.row, std::string(field), "the base row's record is not the fold's"};
    } else if (encode_image(found->second) != encode_image(base->image)) {
      fault = mismatch{r.row, "attachment",
                       "what the base row has besides the record is not the fold's"};
    }
  } else {
    if (is_headless(r)) fault = feed_headless(r);
    headless_.erase(r.key);
    if (base->image.last_row != r.prev_row) {
      fault = differs(r, "prev_row", r.prev_row.value, base->image.last_row.value);
    }
  }
  if (id_of(base->chosen) != r.policy || base->image.policy != r.policy) {
    fault = differs(r, "policy", to_text(r.policy), to_text(id_of(base->chosen)));
  }
  learn(r.policy, base->chosen);
  auto& image = leases_[r.key];
  image = std::move(base->image);
  image.last_row = image.base_row = r.row;
  image.counts.clear();
  note_floor(r.key, image);
  return fault;
}

std::optional<fold::mismatch> fold::feed_forget(const stored_row& r) {
  // Whatever is known of the lease: a checkpoint that stopped half way may have the record of
  // another that took the name since.
  raise_floor(shard_of(r.key), r.floor);
  const auto found = leases_.find(r.key);
  if (found == leases_.end()) {
    headless_.erase(r.key);
    return std::nullopt;
  }
  const auto& image = found->second;
  if (r.row <= image.last_row) return std::nullopt;
  auto fault = find_link_fault(r, image);
  if (!fault && !may_be_forgotten(image.state, r.at)) {
    fault = mismatch{r.row, "event", "a lease in this state may not be forgotten"};
  } else if (!fault && r.floor.value != 0 && r.floor != image.state.gen) {
    fault = differs(r, "floor", r.floor.value, image.state.gen.value);
  }
  raise_floor(shard_of(r.key), image.state.gen);
  forgotten_[r.key] = image.state.gen;
  leases_.erase(found);
  return fault;
}

std::optional<fold::mismatch> fold::feed_restore(const stored_row& r) {
  const auto from = grants_from_of(r.attachment);
  if (!from) return mismatch{r.row, "attachment", "when grants begin again cannot be read"};
  if (r.key.lease.empty()) {
    for (std::size_t shard = 0; shard < floors_.size(); ++shard) {
      raise_floor(shard, {floors_[shard].value + restored_floor_step});
    }
    grants_from_ = later(grants_from_, *from);
    return std::nullopt;
  }
  const auto found = leases_.find(r.key);
  if (found == leases_.end()) return is_headless(r) ? feed_headless(r) : std::nullopt;
  auto& image = found->second;
  if (r.row <= image.last_row) return std::nullopt;
  auto fault = find_link_fault(r, image);
  if (!restore_record(image.state, *from) && !fault) {
    fault = mismatch{r.row, "event", "a settled lease is not changed by a restore"};
  }
  image.last_row = r.row;
  image.last_at = r.at;
  count_reason(image.counts, r.answer.reason);
  note_floor(r.key, image);
  return fault;
}

}  // namespace leasehold::protocol
