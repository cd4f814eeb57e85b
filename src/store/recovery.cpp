#include "src/store/recovery.hpp"

#include <utility>

#include "leasehold/protocol/record_image.hpp"
#include "src/store/batch_log.hpp"

namespace leasehold::storage {

namespace {

using actors::log_head;
using actors::recovered_head;
using actors::store_error;
using actors::stored_batch;
using protocol::row_number;

/// Batches per read of a start: about 4 MiB.
constexpr std::size_t batches_at_once = 64;

class store_recovery {
 public:
  store_recovery(log_reader& from, const store_facts& facts, const log_head& head)
      : from_(from), facts_(facts), head_(head) {}

  actors::store_result<recovered_head> run(const recovery_listener& to) {
    to.on_state(facts_.state);
    if (auto fault = read_policies(to.on_policy)) return *fault;
    if (auto fault = read_records(to.on_record)) return *fault;
    recovered_head out{head_,           facts_.checkpoint, std::nullopt,
                       facts_.store_id, facts_.shards,     facts_.anchor.last_row};
    if (auto fault = read_tail(to.on_batch, out)) return *fault;
    return out;
  }

 private:
  std::optional<store_error> read_policies(
      const std::function<void(protocol::policy_id, const protocol::policy&)>& on_policy) {
    std::optional<store_error> fault;
    auto failed = from_.each_policy([&](protocol::policy_id id, std::optional<protocol::policy> p) {
      if (p && protocol::id_of(*p) == id) {
        on_policy(id, *p);
      } else if (!fault) {
        fault = from_.damaged("policy " + protocol::to_text(id) + " is not what was stored");
      }
    });
    return failed ? failed : fault;
  }

  std::optional<store_error> read_records(
      const std::function<void(actors::checkpoint_entry&&)>& on_record) {
    std::optional<store_error> fault;
    std::int64_t count = 0;
    std::uint64_t sum = 0;
    auto failed = from_.each_record([&](const stored_record& r) {
      ++count;
      sum += r.check;
      auto image =
          record_check(r.key, r.image) == r.check ? protocol::decode_image(r.image) : std::nullopt;
      if (image && image->last_row == r.last_row) {
        on_record({r.key, std::move(*image)});
      } else if (!fault) {
        fault = from_.damaged("the record of lease '" + r.key.lease.value + "' of tenant '" +
                              r.key.tenant.value + "' is not what was stored");
      }
    });
    if (failed) return failed;
    if (!fault && (count != facts_.record_count || sum != facts_.record_sum)) {
      fault = from_.damaged("records of the checkpoint are missing or of another time");
    }
    return fault;
  }

  std::optional<store_error> read_tail(const std::function<void(stored_batch&&)>& on_batch,
                                       recovered_head& out) {
    if (facts_.checkpoint > head_.last_row) {
      return from_.damaged("the log ends at row " + std::to_string(head_.last_row.value) +
                           ", before the checkpoint's row " +
                           std::to_string(facts_.checkpoint.value));
    }
    auto begun = begin_of_tail(out);
    if (auto* fault = std::get_if<store_error>(&begun)) return *fault;
    log_head at = std::get<log_head>(begun);
    while (at.last_row < head_.last_row) {
      auto read = from_.batches_from({at.last_row.value + 1}, batches_at_once);
      if (auto* fault = std::get_if<store_error>(&read)) return *fault;
      auto& batches = std::get<std::vector<stored_batch>>(read);
      if (batches.empty()) {
        return from_.damaged("row " + std::to_string(at.last_row.value + 1) + " is missing");
      }
      for (stored_batch& each : batches) {
        if (auto broken = find_broken(at, each)) {
          return from_.damaged("row " + std::to_string(broken->row.value) + ": " +
                               broken->sentence);
        }
        at = {each.last_row, each.chain};
        out.anchor = each.anchor;
        on_batch(std::move(each));
      }
    }
    return std::nullopt;
  }

  /// The batch before the one that holds the first row after the checkpoint, or the log's anchor.
  actors::store_result<log_head> begin_of_tail(recovered_head& out) {
    auto holding = from_.batches_from({facts_.checkpoint.value + 1}, 1);
    if (auto* fault = std::get_if<store_error>(&holding)) return *fault;
    const auto& found = std::get<std::vector<stored_batch>>(holding);
    const row_number first =
        found.empty() ? row_number{facts_.checkpoint.value + 1} : found.front().first_row;
    auto before = from_.batch_before(first);
    if (auto* fault = std::get_if<store_error>(&before)) return *fault;
    const auto& last = std::get<std::optional<stored_batch>>(before);
    if (!last) return facts_.anchor;
    out.anchor = last->anchor;
    // What is older is checked in the background; the clock goes on from this one.
    auto older = from_.batch_before(last->first_row);
    if (auto* fault = std::get_if<store_error>(&older)) return *fault;
    const auto& base = std::get<std::optional<stored_batch>>(older);
    const log_head behind = base ? log_head{base->last_row, base->chain} : facts_.anchor;
    if (const auto broken = find_broken(behind, *last)) {
      return from_.damaged("row " + std::to_string(broken->row.value) + ": " + broken->sentence);
    }
    return log_head{last->last_row, last->chain};
  }

  log_reader& from_;
  const store_facts& facts_;
  const log_head& head_;
};

}  // namespace

actors::store_result<recovered_head> recover_store(log_reader& from, const store_facts& facts,
                                                   const log_head& head,
                                                   const recovery_listener& to) {
  return store_recovery(from, facts, head).run(to);
}

}  // namespace leasehold::storage
