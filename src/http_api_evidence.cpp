#include "src/http_api_evidence.hpp"

#include <algorithm>
#include <utility>

#include "leasehold/actors/job.hpp"

namespace leasehold::server {
namespace {

using actors::store_error;
using protocol::row_number;
using protocol::stored_row;

using rows_or_error = actors::store_result<std::vector<stored_row>>;

/// The rows of a lease up to `newest`, oldest first; at most `most`.
rows_or_error read_chain(actors::store& from, const protocol::lease_key& key, row_number newest,
                         std::size_t most) {
  auto read = from.rows_of_lease(key, newest, most);
  if (auto* rows = std::get_if<std::vector<stored_row>>(&read)) std::ranges::reverse(*rows);
  return read;
}

/// The policy that a submit or acquire row chose.
std::optional<protocol::policy> chosen_by(const protocol::fold& fold, const stored_row& r) {
  const bool chooses = r.input.kind == protocol::event_kind::submit ||
                       (r.input.kind == protocol::event_kind::acquire && !r.attachment.empty());
  if (!chooses) return std::nullopt;
  const protocol::policy* known = fold.policy_of(r.policy);
  return known == nullptr ? std::nullopt : std::optional(*known);
}

/// The newest row of the lease that was cut from the log, given the rows that are left of it; 0
/// when its first row is there. `newest`: where the reading began.
row_number cut_before(const std::vector<stored_row>& rows, row_number newest) {
  return rows.empty() ? newest : rows.front().prev_row;
}

/// A row of a lease whose first rows were cut and whose base row comes later: the record after it
/// is not known. The row that forgets a lease ends it instead.
bool is_before_base(const stored_row& r) {
  return r.prev_row.value != 0 && r.input.kind != protocol::event_kind::forget;
}

bool is_about_a_lease(const stored_row& r) { return !r.key.lease.empty(); }

}  // namespace

std::optional<protocol::policy> policy_book::find(protocol::policy_id id) {
  const std::lock_guard lock(mutex_);
  const auto known = known_.find(id);
  if (known != known_.end()) return known->second;
  auto read = store_->find_policy(id);
  const auto* found = std::get_if<std::optional<protocol::policy>>(&read);
  if (found == nullptr || !*found) return std::nullopt;
  known_.emplace(id, **found);
  return *found;
}

actors::store_result<std::vector<shown_row>> evidence_cursor::read(std::size_t most_read,
                                                                   std::size_t most_shown) {
  std::vector<shown_row> out;
  if (fold_.leases().size() > most_leases) fold_ = {};
  auto read = store_->rows_from(next_, most_read);
  if (auto* fault = std::get_if<store_error>(&read)) return *fault;
  for (stored_row& r : std::get<std::vector<stored_row>>(read)) {
    if (out.size() >= most_shown) break;
    next_ = {r.row.value + 1};
    const bool everybodys = !is_about_a_lease(r) && r.key.tenant.empty();
    if (!everybodys && r.key.tenant != tenant_) continue;
    shown_row shown;
    if (is_about_a_lease(r)) {
      if (auto fault = feed(r)) return *fault;
      const auto* image = fold_.find(r.key);
      if (image != nullptr) shown.after = image->state;
      if (image == nullptr && is_before_base(r)) continue;
      shown.deferred_row = fold_.deferred_row();
      shown.chosen = chosen_by(fold_, r);
    }
    shown.row = std::move(r);
    out.push_back(std::move(shown));
  }
  return out;
}

std::optional<store_error> evidence_cursor::feed(const stored_row& r) {
  if (fold_.find(r.key) == nullptr && r.prev_row.value > 0) {
    auto chain = read_chain(*store_, r.key, r.prev_row, evidence_reader::most_rows_of_a_lease);
    if (auto* fault = std::get_if<store_error>(&chain)) return *fault;
    fold_.begin_after(cut_before(std::get<std::vector<stored_row>>(chain), r.prev_row));
    for (const stored_row& before : std::get<std::vector<stored_row>>(chain)) {
      learn(before);
      fold_.feed(before);
    }
  }
  learn(r);
  fold_.feed(r);
  return std::nullopt;
}

void evidence_cursor::learn(const stored_row& r) {
  if (r.policy.value == 0 || fold_.policy_of(r.policy) != nullptr) return;
  if (const auto chosen = policies_->find(r.policy)) fold_.learn(r.policy, *chosen);
}

std::string evidence_cursor::queue_of(const protocol::lease_key& key) const {
  const auto* image = fold_.find(key);
  if (image == nullptr) return {};
  const auto spec = actors::decode_job(image->body);
  return spec ? spec->queue : std::string();
}

evidence_reader::evidence_reader(std::shared_ptr<actors::store> from)
    : store_(from), policies_(std::make_shared<policy_book>(std::move(from))) {}

actors::store_result<lease_history> evidence_reader::of_lease(const protocol::lease_key& key,
                                                              row_number newest) {
  auto chain = read_chain(*store_, key, newest, most_rows_of_a_lease + 1);
  if (auto* fault = std::get_if<store_error>(&chain)) return *fault;
  auto& rows = std::get<std::vector<stored_row>>(chain);
  lease_history out;
  out.complete = rows.size() <= most_rows_of_a_lease;
  if (!out.complete) return out;
  protocol::fold fold;
  fold.begin_after(cut_before(rows, newest));
  for (stored_row& r : rows) {
    if (r.policy.value != 0 && fold.policy_of(r.policy) == nullptr) {
      if (const auto chosen = policies_->find(r.policy)) fold.learn(r.policy, *chosen);
    }
    fold.feed(r);
    const auto* image = fold.find(r.key);
    if (image == nullptr && is_before_base(r)) continue;
    auto after = image != nullptr ? image->state : protocol::record{};
    const auto chosen = chosen_by(fold, r);
    out.rows.push_back({std::move(r), std::move(after), fold.deferred_row(), chosen});
  }
  return out;
}

std::unique_ptr<evidence_cursor> evidence_reader::take_cursor(const protocol::tenant_id& tenant,
                                                              row_number from) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find_if(cursors_, [&](const auto& cursor) {
      return cursor->tenant() == tenant && cursor->next() == from;
    });
    if (found != cursors_.end()) {
      auto cursor = std::move(*found);
      cursors_.erase(found);
      return cursor;
    }
  }
  return std::make_unique<evidence_cursor>(store_, policies_, tenant, from);
}

void evidence_reader::keep_cursor(std::unique_ptr<evidence_cursor> cursor) {
  const std::lock_guard lock(mutex_);
  cursors_.push_front(std::move(cursor));
  if (cursors_.size() > most_cursors) cursors_.pop_back();
}

}  // namespace leasehold::server
