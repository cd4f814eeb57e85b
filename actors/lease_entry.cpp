#include "actors/lease_entry.hpp"

#include <algorithm>
#include <utility>

#include "leasehold/protocol/packed.hpp"
#include "leasehold/protocol/record_image.hpp"

namespace leasehold::actors {

namespace {

/// Most fields of a lease that rests are 0: of each run of zero bytes one and their number is left.
std::string squeezed(std::string_view bytes) {
  constexpr std::size_t longest = 255;
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    out.push_back(bytes.front());
    std::size_t taken = 1;
    if (bytes.front() == '\0') {
      taken = std::min({bytes.find_first_not_of('\0'), bytes.size(), longest});
      out.push_back(static_cast<char>(taken));
    }
    bytes.remove_prefix(taken);
  }
  return out;
}

std::string stretched(std::string_view squeezed) {
  std::string out;
  out.reserve(2 * squeezed.size());
  for (std::size_t at = 0; at < squeezed.size(); ++at) {
    if (squeezed[at] != '\0') {
      out.push_back(squeezed[at]);
    } else if (++at < squeezed.size()) {
      out.append(static_cast<unsigned char>(squeezed[at]), '\0');
    }
  }
  return out;
}

// The lease's id stands in front of the packed bytes, and a job has the same id nearly always.
enum class packed_job : std::uint8_t { as_lease, its_own };

std::string pack(lease_facts& facts) {
  protocol::fold::lease_image image;
  image.state = *facts.state;
  auto& r = image.state;
  const bool same = r.job.value == r.lease.value;
  r.lease = {};
  if (same) r.job = {};
  image.policy = facts.policy;
  image.last_row = facts.last_row;
  image.counts = std::move(facts.counts);
  std::string bytes;
  protocol::put_byte(bytes,
                     static_cast<std::uint8_t>(same ? packed_job::as_lease : packed_job::its_own));
  protocol::put_signed(bytes, facts.submitted_row.value);
  protocol::put_text(bytes, squeezed(protocol::encode_image(image)));
  bytes += facts.body;
  return bytes;
}

/// The bytes are our own, so they are whole.
lease_facts unpack(const named_bytes& packed) {
  protocol::packed_reader in(packed.bytes());
  lease_facts facts;
  const auto job = in.get_enum(packed_job::its_own);
  facts.submitted_row.value = in.get_signed();
  auto image = protocol::decode_image(stretched(in.get_text()));
  image->state.lease = protocol::lease_id{packed.name()};
  if (job == packed_job::as_lease) image->state.job = protocol::job_id{packed.name()};
  facts.state = std::make_shared<const protocol::record>(std::move(image->state));
  facts.policy = image->policy;
  facts.last_row = image->last_row;
  facts.body = in.get_bytes(in.left());
  facts.counts = std::move(image->counts);
  return facts;
}

}  // namespace

lease_entry::lease_entry(std::uint64_t its_mark, const protocol::tenant_id& tenant,
                         const protocol::lease_id& lease)
    : mark(its_mark),
      store_shard(static_cast<std::uint8_t>(protocol::shard_of({tenant, lease}))),
      tenant_(&tenant),
      packed_(lease.value) {}

awake_lease& lease_entry::awake() {
  if (awake_) return *awake_;
  auto woken = std::make_unique<awake_lease>();
  if (packed_.bytes().empty()) {
    auto nothing = std::make_shared<protocol::record>();
    nothing->lease = protocol::lease_id{lease()};
    woken->state = std::move(nothing);
  } else {
    static_cast<lease_facts&>(*woken) = unpack(packed_);
    packed_.set_bytes({});
  }
  awake_ = std::move(woken);
  return *awake_;
}

void lease_entry::rest() {
  if (!awake_) return;
  packed_.set_bytes(pack(*awake_));
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
