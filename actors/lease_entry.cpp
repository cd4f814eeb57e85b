#include "actors/lease_entry.hpp"

#include <utility>

#include "leasehold/protocol/packed.hpp"
#include "leasehold/protocol/record_image.hpp"

namespace leasehold::actors {

namespace {

std::string pack(lease_facts& facts) {
  std::string bytes;
  protocol::put_signed(bytes, facts.submitted_row.value);
  protocol::fold::lease_image image;
  image.state = *facts.state;
  image.policy = facts.policy;
  image.last_row = facts.last_row;
  image.body = std::move(facts.body);
  image.counts = std::move(facts.counts);
  bytes += protocol::encode_image(image);
  bytes.shrink_to_fit();
  return bytes;
}

/// The bytes are our own, so they are whole.
lease_facts unpack(std::string_view bytes) {
  protocol::packed_reader in(bytes);
  lease_facts facts;
  facts.submitted_row.value = in.get_signed();
  auto image = protocol::decode_image(in.get_bytes(in.left()));
  facts.state = std::make_shared<const protocol::record>(std::move(image->state));
  facts.policy = image->policy;
  facts.last_row = image->last_row;
  facts.body = std::move(image->body);
  facts.counts = std::move(image->counts);
  return facts;
}

}  // namespace

awake_lease& lease_entry::awake() {
  if (awake_) return *awake_;
  awake_ = std::make_unique<awake_lease>();
  if (packed_.empty()) {
    auto nothing = std::make_shared<protocol::record>();
    nothing->lease = key.lease;
    awake_->state = std::move(nothing);
  } else {
    static_cast<lease_facts&>(*awake_) = unpack(packed_);
    packed_ = {};
  }
  return *awake_;
}

void lease_entry::rest() {
  if (!awake_) return;
  packed_ = pack(*awake_);
  awake_.reset();
}

std::shared_ptr<const protocol::record> lease_entry::state() const {
  return awake_ ? awake_->state : unpack(packed_).state;
}

lease_facts lease_entry::facts() const { return awake_ ? *awake_ : unpack(packed_); }

lease_groups& groups_of(awake_lease& lease) {
  if (!lease.groups) lease.groups = std::make_unique<lease_groups>();
  return *lease.groups;
}

event_group take_deciding(awake_lease& lease) {
  auto group = std::move(*lease.groups->deciding);
  lease.groups->deciding.reset();
  if (lease.groups->waiting.empty()) lease.groups.reset();
  return group;
}

}  // namespace leasehold::actors
