#include "actors/recovery.hpp"

#include <algorithm>
#include <future>
#include <map>
#include <optional>
#include <utility>

#include "leasehold/protocol/rules.hpp"

namespace leasehold::actors {

namespace {

using protocol::lease_key;
using lease_images = std::map<lease_key, protocol::fold::lease_image>;

/// Collects the rows of the recovery: each lease's group goes on from the lease's newest row.
class recovery_rows {
 public:
  recovery_rows(batch& out, protocol::row_number next) : out_(out), next_(next) {}

  void add(std::string framed) {
    out_.groups.push_back(std::move(framed));
    ++out_.rows;
    ++next_.value;
  }

  /// A row of a lease that follows from no rule.
  void follow(protocol::fold::lease_image& image, protocol::instant at, protocol::reason why,
              std::string framed) {
    image.last_row = next_;
    image.last_at = at;
    protocol::count_reason(image.counts, why);
    add(std::move(framed));
  }

  template <class Rule>
  void run(const lease_key& key, protocol::fold::lease_image& image, const protocol::policy& chosen,
           protocol::instant now, Rule rule) {
    protocol::row_group rows(key, image.policy, image.last_row, {}, now);
    protocol::image_rows counted(rows, image);
    rule(image.state, chosen, now, counted);
    if (rows.count() == 0) return;
    out_.rows += rows.count();
    next_.value += rows.count();
    image.last_row = {next_.value - 1};
    out_.groups.push_back(rows.take_bytes());
  }

 private:
  batch& out_;
  protocol::row_number next_;
};

/// What was granted after the backup is unknown: every floor rises, every unsettled job has one
/// generation more that nothing is known of, and nothing is granted before the longest of all
/// grants is over (architecture.md 4).
void restore(protocol::fold& folded, lease_images& leases, recovery_rows& rows,
             protocol::instant now) {
  protocol::duration longest = protocol::policy{}.lease_duration;
  for (const auto& [key, image] : leases) {
    longest = std::max(longest, image.state.lease_duration);
    if (const auto* chosen = folded.policy_of(image.policy)) {
      longest = std::max(longest, chosen->lease_duration);
    }
  }
  const auto grants_from = now + longest;
  rows.add(protocol::encode_restore_row(grants_from, now));
  for (std::size_t shard = 0; shard < protocol::store_shards; ++shard) {
    folded.raise_floor(shard, {folded.floor_of(shard).value + protocol::restored_floor_step});
  }
  folded.hold_grants(later(folded.grants_from(), grants_from));
  for (auto& [key, image] : leases) {
    const auto before = image.state.state;
    if (!protocol::restore_record(image.state, grants_from)) continue;
    rows.follow(image, now, protocol::reason::backup_restored,
                protocol::encode_restored_lease_row(key, image.policy, image.last_row, before,
                                                    grants_from, now));
  }
}

/// The jobs whose cancel is open: what a recovery makes of them is told to their dispatches.
std::map<lease_key, protocol::record> cancelled_jobs(const lease_images& leases) {
  std::map<lease_key, protocol::record> found;
  for (const auto& [key, image] : leases) {
    const auto& state = image.state;
    if (state.cancel_requested_at && !protocol::is_settled(state.state)) found.emplace(key, state);
  }
  return found;
}

/// Opens again what is open, which changes nothing where it is known: a store that was written
/// before there were dispatches has their records from its first start on.
void add_dispatches(const std::map<lease_key, protocol::record>& before,
                    const lease_images& after, protocol::instant now, batch& out) {
  for (const auto& [key, was] : before) {
    auto not_yet = was;
    not_yet.cancel_requested_at = {};
    if (auto open = protocol::dispatch_change_of(key.tenant, not_yet, was, now)) {
      out.dispatches.push_back(std::move(*open));
    }
    const auto& is = after.at(key).state;
    if (auto change = protocol::dispatch_change_of(key.tenant, was, is, now)) {
      out.dispatches.push_back(std::move(*change));
    }
  }
}

store_error corrupt(std::string sentence) {
  return {store_error::kind::corrupt, std::move(sentence)};
}

}  // namespace

store_result<recovered_leases> recover_leases(store& where, const clock& time,
                                              std::string_view basis, bool restored_backup,
                                              const std::vector<context_ptr>& threads) {
  protocol::fold folded;
  std::vector<std::pair<protocol::policy_id, protocol::policy>> policies;
  std::vector<forgotten_lease> forgotten;
  std::optional<store_error> broken;
  auto head = where.recover(
      [&](const store_state& state) {
        for (std::size_t shard = 0; shard < state.floors.size(); ++shard) {
          folded.raise_floor(shard, state.floors[shard]);
        }
        folded.hold_grants(state.grants_from);
      },
      [&](checkpoint_entry&& entry) { folded.load(std::move(entry.key), std::move(entry.image)); },
      [&](protocol::policy_id id, const protocol::policy& chosen) {
        folded.learn(id, chosen);
        policies.emplace_back(id, chosen);
      },
      [&](stored_batch&& stored) {
        if (broken) return;
        const auto decoded = protocol::decode_rows(stored.rows, stored.first_row);
        for (const auto& row : decoded.rows) {
          if (row.input.kind == protocol::event_kind::forget) {
            forgotten.push_back({row.key, row.row});
          }
          if (const auto wrong = folded.feed(row)) {
            broken = corrupt("Row " + std::to_string(wrong->row.value) +
                             " does not follow from the rows before it: " + wrong->sentence +
                             " Run `leasehold verify` and restore a backup.");
            return;
          }
        }
        if (decoded.broken) {
          broken = corrupt("Row " + std::to_string(decoded.broken->value) +
                           " cannot be read. Run `leasehold verify` and restore a backup.");
        }
      });
  if (auto* error = std::get_if<store_error>(&head)) return std::move(*error);
  if (broken) return std::move(*broken);
  const auto& found = std::get<recovered_head>(head);

  for (const auto& [key, image] : folded.leases()) {
    if (folded.policy_of(image.policy) != nullptr) continue;
    return corrupt("Policy " + protocol::to_text(image.policy) + " of lease " + key.lease.value +
                   " is not in the store. Run `leasehold verify` and restore a backup.");
  }

  const auto now = time.now();
  batch written;
  written.anchor = time.anchor();
  recovery_rows rows(written, {found.head.last_row.value + 1});
  rows.add(protocol::encode_clock_anchored_row(basis, now));
  lease_images leases = folded.take_leases();
  const auto cancelled = cancelled_jobs(leases);
  if (restored_backup) restore(folded, leases, rows, now);
  for (const auto rule : {protocol::recover_due, protocol::recover_grace, protocol::expire_due}) {
    for (auto& [key, image] : leases) {
      const auto* chosen = folded.policy_of(image.policy);
      if (chosen != nullptr) rows.run(key, image, *chosen, now, rule);
    }
  }

  if (threads.front()->keeps_dispatches) add_dispatches(cancelled, leases, now, written);

  std::promise<store_result<committed>> promise;
  where.commit(std::move(written),
               [&](store_result<committed> result) { promise.set_value(std::move(result)); });
  auto result = promise.get_future().get();
  if (auto* error = std::get_if<store_error>(&result)) return std::move(*error);

  recovered_leases out;
  out.last_row = std::get<committed>(result).head.last_row;
  out.checkpoint = found.checkpoint;
  out.anchor = found.anchor_row;
  out.state.grants_from = folded.grants_from();
  for (std::size_t shard = 0; shard < protocol::store_shards; ++shard) {
    out.state.floors[shard] = folded.floor_of(shard);
  }
  out.by_thread.resize(threads.size());
  for (auto& part : out.by_thread) {
    part.policies = policies;
    part.state = out.state;
  }
  for (auto& each : forgotten) {
    out.by_thread[threads.front()->thread_of(each.key)].forgotten.push_back(std::move(each));
  }
  for (auto& [key, image] : leases) {
    const bool changed = image.last_row > found.checkpoint;
    auto& part = out.by_thread[threads.front()->thread_of(key)];
    part.leases.push_back({key, std::move(image), changed});
  }
  return out;
}

}  // namespace leasehold::actors
