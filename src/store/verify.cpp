#include "src/store/verify.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <utility>

#include "leasehold/protocol/record_image.hpp"
#include "src/store/batch_log.hpp"
#include "src/store/store_source.hpp"

namespace leasehold::storage {

namespace {

using actors::log_head;
using actors::store_error;
using actors::stored_batch;
using protocol::row_number;
using protocol::stored_row;

constexpr std::size_t batches_at_once = 64;
/// How often it begins anew when the log is cut under it.
constexpr int most_tries = 5;

constexpr std::array<std::string_view, 6> not_in_a_store{
    "a log that was cut at its end: keep what 'leasehold head' prints elsewhere and give it as "
    "--head",
    "a frame that left no row",
    "a clock that was wrong: times are taken as they are stored",
    "a chain that was written anew as a whole: --head shows that too",
    "rules that are wrong in the same way here and in the coordinator",
    "frames that a counted row stands for: only their number is there",
};

constexpr std::array<std::string_view, 5> not_in_lines{
    "rows that were left out at the end of a lease, unless the jobs are compared (--jobs)",
    "a lease of which no row is there",
    "a row whose inputs were changed so that every later decision still follows: the hashes of the "
    "store are not in the lines (--data reads them)",
    "a clock that was wrong: times are taken as they are stored",
    "rules that are wrong in the same way here and in the coordinator",
};

/// The payload of a job is large and never judged: while verifying, its hash stands for it.
std::string digest_of(std::string_view body) {
  std::string digest(32, '\0');
  EVP_Digest(body.data(), body.size(), reinterpret_cast<unsigned char*>(digest.data()), nullptr,
             EVP_sha256(), nullptr);
  return digest;
}

/// What the checkpoint says about a lease, small enough to keep for every lease.
struct checkpointed {
  row_number last_row;
  std::uint64_t check = 0;
  bool met = false;
};

std::uint64_t check_of(const protocol::lease_key& key, const protocol::fold::lease_image& image) {
  return record_check(key, protocol::encode_image(image));
}

/// Goes through one store, batch by batch.
class store_verifier {
 public:
  store_verifier(store_source& from, const verify_options& how)
      : from_(from), how_(how), problems_(report_, how.most_problems) {
    if (how.head) heads_.push_back({*how.head, std::nullopt, "--head"});
    const auto* kept = from.kept();
    if (kept != nullptr && kept->head) {
      heads_.push_back({*kept->head, std::nullopt, "the directory's file head"});
    }
  }

  actors::store_result<verify_report> run() {
    report_.head_was_asked = how_.head.has_value();
    if (auto fault = read_checkpoint()) return *fault;
    if (auto fault = learn_policies()) return *fault;
    fold_.begin_after(facts_.anchor.last_row);
    for (const auto& [key, image] : beheaded_) {
      if (image.last_row <= facts_.anchor.last_row) fold_.load(key, image);
    }
    if (auto fault = read_log()) return *fault;
    report_beheaded();
    for (const auto& missing : fold_.missing_rows()) problems_.add(missing);
    compare_floors();
    report_records();
    if (auto fault = compare_policies()) return *fault;
    for (const auto& each : heads_) check_head(each);
    report_.leases = static_cast<std::int64_t>(fold_.leases().size());
    report_.policies = static_cast<std::int64_t>(policy_rows_.size());
    std::stable_sort(report_.problems.begin(), report_.problems.end(),
                     [](const auto& a, const auto& b) { return a.row < b.row; });
    return report_;
  }

  /// The coordinator cut the log behind where it had been read: nothing of the report counts.
  [[nodiscard]] bool overtaken() const noexcept { return overtaken_; }

 private:
  /// Records, their sums and the log's end as of one instant; the log is then read up to that end.
  std::optional<store_error> read_checkpoint() {
    std::int64_t count = 0;
    std::uint64_t sum = 0;
    auto fault = from_.checkpoint(
        [&](const store_facts& facts, const log_head& end) {
          facts_ = facts;
          end_ = end;
        },
        [&](const stored_record& r) {
          ++count;
          sum += r.check;
          read_record(r);
        });
    if (fault) return fault;
    if (facts_.checkpoint > end_.last_row) {
      problems_.add(end_.last_row, "",
                    "the log ends here, before the checkpoint's row " +
                        std::to_string(facts_.checkpoint.value) + ": it was cut at its end");
    }
    if (count != facts_.record_count || sum != facts_.record_sum) {
      problems_.add(facts_.checkpoint, "",
                    "records of the checkpoint are missing, were added, or are of another time");
    }
    return std::nullopt;
  }

  void read_record(const stored_record& r) {
    auto image = protocol::decode_image(r.image);
    if (record_check(r.key, r.image) != r.check || !image || image->last_row != r.last_row) {
      problems_.add(
          r.last_row, "",
          "the checkpoint's record of lease '" + r.key.lease.value + "' is not what was stored");
      checkpoint_[r.key] = {r.last_row, 0, true};
      return;
    }
    image->body = digest_of(image->body);
    checkpoint_[r.key] = {r.last_row, check_of(r.key, *image), false};
    if (image->base_row <= facts_.anchor.last_row) beheaded_.emplace(r.key, std::move(*image));
  }

  std::optional<store_error> read_log() {
    at_ = facts_.anchor;
    note_head();
    while (at_.last_row < end_.last_row) {
      auto read = from_.batches_from({at_.last_row.value + 1}, batches_at_once);
      if (auto* fault = std::get_if<store_error>(&read)) return *fault;
      const auto& batches = std::get<std::vector<stored_batch>>(read);
      if (batches.empty() || batches.front().first_row.value != at_.last_row.value + 1) {
        const auto now = from_.facts();
        const auto* facts = std::get_if<store_facts>(&now);
        overtaken_ = facts != nullptr && facts->anchor.last_row > at_.last_row;
        if (overtaken_) break;
      }
      if (batches.empty()) {
        problems_.add({at_.last_row.value + 1}, "", "the row is not in the log");
        break;
      }
      for (const stored_batch& each : batches) {
        feed_batch(each);
        if (at_.last_row >= end_.last_row) break;
      }
      if (how_.progress) how_.progress(at_.last_row.value, end_.last_row.value);
    }
    report_.head = at_;
    return std::nullopt;
  }

  void feed_batch(const stored_batch& batch) {
    if (auto broken = find_broken(at_, batch)) {
      problems_.add(broken->row, "", std::move(broken->sentence));
    }
    const auto decoded = protocol::decode_rows(batch.rows, batch.first_row);
    if (decoded.broken) problems_.add(*decoded.broken, "", "the row cannot be read");
    for (const stored_row& r : decoded.rows) feed_row(r);
    ++report_.batches;
    at_ = {batch.last_row, batch.chain};
    note_head();
  }

  void note_head() {
    for (auto& each : heads_) {
      if (each.head.last_row == at_.last_row) each.met = at_.chain;
    }
  }

  void feed_row(const stored_row& r) {
    ++report_.rows;
    if (r.input.kind == protocol::event_kind::policy) policy_rows_.emplace(r.policy, r.row);
    auto slim = without_payload(r);
    const auto wrong = fold_.feed(slim ? *slim : r);
    if (wrong) problems_.add(*wrong);
    if (!beheaded_.empty()) follow_beheaded(r, !wrong);
    compare_record(r);
    if (r.row <= facts_.checkpoint && r.input.kind == protocol::event_kind::forget) {
      floors_seen_[protocol::shard_of(r.key)] = fold_.floor_of(protocol::shard_of(r.key));
    }
  }

  /// The row with the hash of its job's body in the body's place; nothing when it has none.
  static std::optional<stored_row> without_payload(const stored_row& r) {
    if (r.attachment.empty()) return std::nullopt;
    if (r.input.kind == protocol::event_kind::submit ||
        r.input.kind == protocol::event_kind::acquire) {
      stored_row slim = r;
      slim.attachment = digest_of(r.attachment);
      return slim;
    }
    if (r.input.kind != protocol::event_kind::base) return std::nullopt;
    auto base = protocol::decode_base(r.attachment);
    if (!base) return std::nullopt;
    stored_row slim = r;
    base->image.body = digest_of(base->image.body);
    slim.attachment = protocol::encode_base(*base);
    return slim;
  }

  /// A floor of the checkpoint is never below the generations whose forgetting stands in the log.
  void compare_floors() {
    for (std::size_t shard = 0; shard < floors_seen_.size(); ++shard) {
      if (facts_.state.floors[shard] >= floors_seen_[shard]) continue;
      problems_.add(facts_.checkpoint, "floor",
                    "the checkpoint's floor of shard " + std::to_string(shard) +
                        " is below a generation that was forgotten");
    }
  }

  /// Rows that made a policy known may have been cut. Its id is a hash of it, so that the one among
  /// the policies is the one that the rows mean.
  std::optional<store_error> learn_policies() {
    if (facts_.anchor.last_row.value == 0) return std::nullopt;
    return from_.each_policy(
        [&](protocol::policy_id id, const std::optional<protocol::policy>& chosen) {
          if (chosen && protocol::id_of(*chosen) == id) fold_.learn(id, *chosen);
        });
  }

  /// A record whose first rows were cut, and whose base row stands behind the checkpoint: the rows
  /// between them follow from the record, and the base row says whether it was right.
  void follow_beheaded(const stored_row& r, bool well) {
    const auto found = beheaded_.find(r.key);
    if (found == beheaded_.end()) return;
    const auto kind = r.input.kind;
    if (kind == protocol::event_kind::base || kind == protocol::event_kind::forget) {
      auto& record = checkpoint_[r.key];
      record.met = well && r.row > record.last_row;
      report_.records += record.met ? 1 : 0;
      beheaded_.erase(found);
    } else if (r.row == found->second.last_row && fold_.find(r.key) == nullptr) {
      fold_.load(r.key, found->second);
    }
  }

  void report_beheaded() {
    for (const auto& [key, image] : beheaded_) {
      checkpoint_[key].met = true;
      problems_.add(image.last_row, "event",
                    "the first rows of lease '" + key.lease.value +
                        "' were cut, and no base row stands for them");
    }
  }

  /// The record of the checkpoint is compared at the row that it is of.
  void compare_record(const stored_row& r) {
    const auto found = checkpoint_.find(r.key);
    if (found == checkpoint_.end() || found->second.met || found->second.last_row != r.row) return;
    if (beheaded_.contains(r.key)) return;  // its base row will say
    found->second.met = true;
    ++report_.records;
    const auto* image = fold_.find(r.key);
    if (image == nullptr) {
      problems_.add(r.row, "", "the checkpoint has a record of a lease that nothing made known");
      return;
    }
    auto rebuilt = *image;
    // A record without a body has the hash of an empty one here and there.
    if (rebuilt.body.empty()) rebuilt.body = digest_of({});
    if (check_of(r.key, rebuilt) == found->second.check) return;
    auto of_old_kind = rebuilt;
    // Version 0.1.0 took the time of a base row for the age of its lease.
    of_old_kind.last_at = r.at;
    const bool is_base = r.input.kind == protocol::event_kind::base;
    if (is_base && check_of(r.key, of_old_kind) == found->second.check) return;
    name_difference(r, rebuilt);
  }

  void name_difference(const stored_row& r, const protocol::fold::lease_image& rebuilt) {
    std::string column;
    auto failed = from_.each_record([&](const stored_record& stored) {
      if (stored.key != r.key) return;
      if (const auto image = protocol::decode_image(stored.image)) {
        column = protocol::first_difference(image->state, rebuilt.state);
        if (column.empty() && image->policy != rebuilt.policy) column = "policy";
        if (column.empty()) column = "attachment";
      }
    });
    problems_.add(r.row, column,
                  "the checkpoint's record of lease '" + r.key.lease.value +
                      "' is not what its rows fold to");
  }

  void report_records() {
    for (const auto& [key, record] : checkpoint_) {
      if (record.met) continue;
      problems_.add(record.last_row, "",
                    "the checkpoint has a record of lease '" + key.lease.value +
                        "' as of this row, which is no row of that lease");
    }
    for (const auto& [key, image] : fold_.leases()) {
      if (image.last_row > facts_.checkpoint || checkpoint_.contains(key)) continue;
      problems_.add(image.last_row, "",
                    "the checkpoint has no record of lease '" + key.lease.value + "'");
    }
  }

  std::optional<store_error> compare_policies() {
    std::set<protocol::policy_id> there;
    auto fault = from_.each_policy(
        [&](protocol::policy_id id, const std::optional<protocol::policy>& chosen) {
          there.insert(id);
          const auto known = policy_rows_.find(id);
          const row_number row = known == policy_rows_.end() ? row_number{} : known->second;
          if (!chosen || protocol::id_of(*chosen) != id) {
            problems_.add(row, "policy",
                          "policy " + protocol::to_text(id) + " is not what this row made known");
          } else if (known == policy_rows_.end() && facts_.anchor.last_row.value == 0) {
            problems_.add(row, "policy", "no row makes policy " + protocol::to_text(id) + " known");
          }
        });
    for (const auto& [id, row] : policy_rows_) {
      if (there.contains(id)) continue;
      problems_.add(row, "policy",
                    "policy " + protocol::to_text(id) + " of this row is not among the policies");
    }
    return fault;
  }

  /// Where the log once ended, and its hash there as it is now.
  struct wanted_head {
    log_head head;
    std::optional<actors::chain_hash> met;
    std::string_view from;
  };

  void check_head(const wanted_head& wanted) {
    const row_number row = wanted.head.last_row;
    const auto kept = " when the head was kept (" + std::string(wanted.from) + ")";
    // The directory's own may be of a time whose rows were cut since.
    if (row < facts_.anchor.last_row && (!how_.head || wanted.head != *how_.head)) return;
    if (row > at_.last_row) {
      problems_.add(
          {at_.last_row.value + 1}, "",
          "the row is not in the log, which reached row " + std::to_string(row.value) + kept);
    } else if (!wanted.met) {
      problems_.add(row, "", "no batch ends at this row, as it did" + kept);
    } else if (*wanted.met != wanted.head.chain) {
      problems_.add(row, "", "the hash up to this row is not what it was" + kept);
    }
  }

  store_source& from_;
  store_facts facts_;
  const verify_options& how_;
  verify_report report_;
  problem_list problems_;
  protocol::fold fold_;
  log_head at_;
  log_head end_;
  std::vector<wanted_head> heads_;
  std::map<protocol::lease_key, checkpointed> checkpoint_;
  std::map<protocol::lease_key, protocol::fold::lease_image> beheaded_;
  bool overtaken_ = false;
  std::map<protocol::policy_id, row_number> policy_rows_;
  std::array<protocol::generation, protocol::store_shards> floors_seen_{};
};

}  // namespace

std::span<const std::string_view> beyond_a_store() noexcept { return not_in_a_store; }
std::span<const std::string_view> beyond_lines() noexcept { return not_in_lines; }

void problem_list::add(row_number row, std::string column, std::string sentence) {
  ++report_.problem_count;
  if (report_.problems.size() < most_) {
    report_.problems.push_back({row, std::move(column), std::move(sentence)});
  }
}

void problem_list::add(const protocol::fold::mismatch& wrong) {
  add(wrong.row, wrong.column, wrong.sentence);
}

actors::store_result<verify_report> verify_source(store_source& from, const verify_options& how) {
  const auto first = from.facts();
  if (const auto* fault = std::get_if<store_error>(&first)) return *fault;
  for (int tries = 0;; ++tries) {
    store_verifier verifier(from, how);
    auto done = verifier.run();
    if (!verifier.overtaken()) {
      auto* report = std::get_if<verify_report>(&done);
      const auto* kept = from.kept();
      const bool is_unguarded = kept != nullptr && !kept->head;
      if (report != nullptr && report->rows > 0 && is_unguarded) {
        const bool is_backup = std::get<store_facts>(first).is_backup && kept->is_missing;
        if (!is_backup) report->remarks.push_back(kept->why_none);
      }
      return done;
    }
    if (tries == most_tries) {
      return store_error{store_error::kind::busy,
                         from.name() +
                             ": the coordinator cuts the log faster than it can be read; try again "
                             "later, or verify a backup"};
    }
  }
}

actors::store_result<verify_report> verify_store(const store_place& place,
                                                 const verify_options& how) {
  auto opened = open_source(place);
  if (auto* fault = std::get_if<store_error>(&opened)) return *fault;
  return verify_source(*std::get<std::unique_ptr<store_source>>(opened), how);
}

actors::store_result<log_head> head_of_store(const store_place& place) {
  auto opened = open_source(place);
  if (auto* fault = std::get_if<store_error>(&opened)) return *fault;
  return std::get<std::unique_ptr<store_source>>(opened)->head();
}

actors::store_result<verify_report> verify_directory(const std::filesystem::path& directory,
                                                     const verify_options& how) {
  return verify_store(sqlite_place{directory}, how);
}

actors::store_result<log_head> head_of_directory(const std::filesystem::path& directory) {
  return head_of_store(sqlite_place{directory});
}

std::string to_text(const log_head& head) {
  return std::to_string(head.last_row.value) + ":" + to_hex(head.chain);
}

std::optional<log_head> head_from_text(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  log_head head;
  const char* end = text.data() + colon;
  const auto read = std::from_chars(text.data(), end, head.last_row.value);
  const auto chain = chain_from_hex(text.substr(colon + 1));
  if (read.ec != std::errc{} || read.ptr != end || head.last_row.value < 0 || !chain) {
    return std::nullopt;
  }
  head.chain = *chain;
  return head;
}

}  // namespace leasehold::storage
