// Evidence rows: how they are stored (compact), shown (columns) and folded back into records.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "leasehold/protocol/event.hpp"
#include "leasehold/protocol/policy.hpp"
#include "leasehold/protocol/reason.hpp"
#include "leasehold/protocol/record.hpp"
#include "leasehold/protocol/rules.hpp"
#include "leasehold/protocol/units.hpp"

namespace leasehold::protocol {

using tenant_id = text_id<struct tenant_id_tag>;

/// Names a lease in the whole store.
struct lease_key {
  tenant_id tenant;
  lease_id lease;
  friend auto operator<=>(const lease_key&, const lease_key&) = default;
};

/// A store has 64 shards, fixed when it is made (architecture.md 2).
inline constexpr std::size_t store_shards = 64;
/// The store shard of a lease; the same in every process and build.
std::size_t shard_of(const lease_key& key) noexcept;

/// Names a policy by its content: the same policy has the same id in every store. 0: none.
struct policy_id {
  std::uint64_t value = 0;
  friend constexpr auto operator<=>(policy_id, policy_id) = default;
};
/// 64 bits that tell bytes apart; no security hash.
std::uint64_t hash_of(std::string_view bytes) noexcept;
/// A hash of the policy's canonical text. It tells policies apart and is no security hash.
policy_id id_of(const policy& chosen);
std::string to_text(policy_id id);  ///< 16 hex digits
std::optional<policy_id> policy_id_from_text(std::string_view text);
/// The policy as `key=value` lines in the order of policy_keys(), and back. Nothing when a key or a
/// value is not known; a key that is not named has its default.
std::string canonical_text(const policy& chosen);
std::optional<policy> policy_from_text(std::string_view text);

/// A row as it is stored: what came in and what was decided. Together with the rows of the lease
/// before it this is everything: the record after it is the fold.
struct stored_row {
  row_number row;       ///< its place in the log; not encoded
  row_number prev_row;  ///< the lease's row before; 0 for its first
  lease_key key;
  policy_id policy;
  instant at;
  instant ingress_at;  ///< frames and operations: when their message was read; else 0
  instant fired_at;    ///< deadlines: when the timer really fired; else 0
  /// offer and acquire: the shard's, where above the lease's generation. forget: the generation
  /// that the shard's must not be below any more; 0 in a row of 0.1.0, where the fold alone says
  /// it.
  generation floor;
  event input;  ///< its kind is the row's; the rest is default for the coordinator's own rows
  bool has_input = false;
  bool derived = false;
  lease_state state_before = lease_state::none;
  verdict answer;
  std::int64_t rule_version = protocol::rule_version;
  /// Opaque to the rules. submit: the job's body. acquire, accepted: the lock's. policy: its
  /// canonical text. clock_anchored: its basis (boot, wall, operator). counted: what was counted
  /// (counted_frames). base: the lease as a whole (history_base). restore: from when on grants are
  /// made (restored_backup).
  std::string attachment;
  friend bool operator==(const stored_row&, const stored_row&) = default;
};

/// Refused or ignored frames that have no row of their own: those of one (lease, generation, kind,
/// reason) beyond the first hundred of a minute are one counted row (protocol.md 6).
struct counted_frames {
  protocol::generation gen;
  event_kind kind{};
  protocol::decision decision{};
  protocol::reason reason{};
  std::int64_t number = 0;
  sequence first;  ///< of the first frame counted; 0 for kinds without one
  sequence last;
  std::uint64_t hash = 0;  ///< over the counted frames in their order; tells two counts apart
  friend bool operator==(const counted_frames&, const counted_frames&) = default;
};
/// As the attachment of a counted row: `key=value` lines.
std::string to_text(const counted_frames& what);

/// The rows of one lease from one durable group, encoded as they come to be. The log frames each
/// row with its length, so that rows can be told apart without decoding them.
class row_group final : public row_sink {
 public:
  /// `last_row`: the lease's newest row so far; `ingress` of the group's message, or 0.
  row_group(lease_key key, policy_id policy, row_number last_row, instant ingress,
            instant fired_at);

  void on_row(const row& what, const record& after) override;
  /// Attached to the next row (see stored_row::attachment).
  void attach(std::string bytes);
  /// The rows from here on are judged by another policy: an acquire brings its own.
  void judge_by(policy_id policy) noexcept { policy_ = policy; }
  /// One row for frames that were only counted; it changes no record.
  void count(const counted_frames& what, instant at, const record& r);

  [[nodiscard]] std::int64_t count() const noexcept { return count_; }
  [[nodiscard]] const std::string& bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::string take_bytes() noexcept { return std::move(bytes_); }

 private:
  lease_key key_;
  policy_id policy_;
  row_number last_row_;
  instant ingress_;
  instant fired_at_;
  std::string attachment_;
  std::string bytes_;
  std::int64_t count_ = 0;
  bool before_is_mine_ = false;
};

/// How often a reason was given.
struct reason_count {
  protocol::reason reason{};
  std::int64_t number = 0;
  friend bool operator==(const reason_count&, const reason_count&) = default;
};
/// Counts of one lease, ordered by reason; few, so that a line of them is searched.
using reason_counts = std::vector<reason_count>;
void count_reason(reason_counts& counts, reason why, std::int64_t number = 1);

/// Encodes one row by itself, framed (tests, and the rows below).
std::string encode_row(const stored_row& r);
/// The row that makes a policy known; it belongs before the first row that names the policy.
std::string encode_policy_row(const policy& chosen, instant at);
/// The row that each start writes: `basis` is boot, wall or operator.
std::string encode_clock_anchored_row(std::string_view basis, instant at);

/// The row after which a lease is known no more. `last_row`: its newest.
std::string encode_forget_row(const lease_key& key, row_number last_row, const record& r,
                              instant at);
/// What a restore said: nothing is granted before. In milliseconds as `grants_from=N`.
std::string encode_restore_row(instant grants_from, instant at);
std::string grants_from_text(instant grants_from);
std::optional<instant> grants_from_of(std::string_view attachment);
/// The same for one lease that restore_record changed.
std::string encode_restored_lease_row(const lease_key& key, policy_id policy, row_number last_row,
                                      lease_state state, instant grants_from, instant at);

/// A framed row among bytes: its length, a check value of 4 bytes that only the log fills in, its
/// body.
struct framed_row {
  std::size_t check_at;  ///< where the check value stands
  std::uint32_t check;
  std::string_view body;
  std::size_t end;  ///< where the next one begins
};
/// Reads the frame at `at`; nothing when it does not end within `bytes`.
std::optional<framed_row> read_frame(std::string_view bytes, std::size_t at) noexcept;

/// Decodes the body of one framed row; nothing when it is not a whole row.
std::optional<stored_row> decode_row(std::string_view body, row_number number);

/// Decodes the rows that `bytes` hold, numbered from `first`; the first bad one ends it with
/// `broken`.
struct decoded_rows {
  std::vector<stored_row> rows;
  std::optional<row_number> broken;
};
decoded_rows decode_rows(std::string_view bytes, row_number first);

/// Folds stored rows back into records and checks each stored decision against the rules: recovery,
/// evidence export, verify and the reader of exported lines are this one class.
class fold {
 public:
  struct lease_image {
    record state;
    policy_id policy;
    row_number last_row;
    std::string body;      ///< the attachment of its submit row
    instant last_at;       ///< `at` of its newest row that is no base row
    row_number base_row;   ///< where its history begins: its newest base row, or its first row
    reason_counts counts;  ///< of its rows from there on
    generation floor;      ///< of its shard as of its newest row; no later grant is below it
  };
  /// What is wrong with a row: which column differs and how.
  struct mismatch {
    row_number row;
    std::string column;
    std::string sentence;
  };

  /// The log begins behind this row. A lease whose first rows were cut is not known before its base
  /// row.
  void begin_after(row_number anchor) { anchor_ = anchor; }
  /// The floor of a shard as a checkpoint has it; rows raise it from there.
  void raise_floor(std::size_t shard, generation to);
  [[nodiscard]] generation floor_of(std::size_t shard) const { return floors_[shard]; }
  /// Since the newest restore nothing is granted before; 0: there was none.
  [[nodiscard]] instant grants_from() const noexcept { return grants_from_; }
  void hold_grants(instant until) { grants_from_ = until; }

  void learn(policy_id id, const policy& chosen);
  [[nodiscard]] const policy* policy_of(policy_id id) const;
  /// Puts a lease as a checkpoint has it; rows after its last_row go on from there.
  void load(lease_key key, lease_image image);

  /// Applies the next row of its lease. Yields what does not follow from the inputs; the record
  /// then is as the rules say. Rows of one lease must come in order; rows at or before its last_row
  /// are passed over.
  std::optional<mismatch> feed(const stored_row& r);

  /// Nothing when the lease is not known.
  [[nodiscard]] const lease_image* find(const lease_key& key) const;
  [[nodiscard]] const std::map<lease_key, lease_image>& leases() const noexcept { return leases_; }
  /// Gives them away, for who needs the fold no more for its rows.
  [[nodiscard]] std::map<lease_key, lease_image> take_leases() noexcept {
    return std::exchange(leases_, {});
  }
  /// After the last row: a derived row that the rules ask for, or a base row of a lease whose first
  /// rows were cut, that the log does not have.
  [[nodiscard]] std::vector<mismatch> missing_rows() const;
  /// Where the frame of the row fed last was deferred; 0 if it was not.
  [[nodiscard]] row_number deferred_row() const noexcept { return deferred_row_; }

 private:
  /// A row that the rules ask for, with the record after it.
  struct expected_row {
    event_kind kind;
    instant at;
    verdict answer;
    lease_state state_before;
    row_number deferred_row;
    bool derived;
    bool has_input;
    generation floor;
    event input;
    record after;
  };
  using expected_rows = std::vector<expected_row>;
  class collector;

  std::optional<mismatch> feed_store_row(const stored_row& r);
  std::optional<mismatch> feed_base(const stored_row& r);
  static bool is_age_of(const lease_image& image, const lease_image& said, instant at);
  std::optional<mismatch> feed_forget(const stored_row& r);
  std::optional<mismatch> feed_restore(const stored_row& r);
  /// Notes a row of a lease whose first rows were cut; nothing is known of it before its base row.
  std::optional<mismatch> feed_headless(const stored_row& r);
  [[nodiscard]] bool is_headless(const stored_row& r) const;
  [[nodiscard]] std::optional<mismatch> find_link_fault(const stored_row& r,
                                                        const lease_image& image) const;
  void note_floor(const lease_key& key, lease_image& image) const;
  std::optional<mismatch> feed_counted(const stored_row& r);
  std::optional<mismatch> feed_lease_row(const stored_row& r, lease_image& image);
  std::optional<mismatch> judge(const stored_row& r, lease_image& image, expected_rows& due);
  std::optional<mismatch> find_floor_fault(const stored_row& r, const lease_image& image) const;
  std::optional<mismatch> find_policy_fault(const stored_row& r, const lease_image& image) const;
  expected_rows run_rules(const stored_row& r, lease_image& image) const;
  std::optional<mismatch> take(const stored_row& r, lease_image& image, expected_rows& due);
  void keep(const stored_row& r, lease_image& image, const expected_row& taken);
  static std::optional<mismatch> find_difference(const stored_row& r, const expected_row& wanted);
  static std::optional<mismatch> find_input_difference(const stored_row& r, const event& wanted);

  std::map<lease_key, lease_image> leases_;
  std::map<policy_id, policy> policies_;
  /// Of leases whose group has begun: what must come next.
  std::map<lease_key, expected_rows> expected_;
  row_number deferred_row_;

  row_number anchor_;
  /// Leases whose first rows were cut and whose base row has not come: their newest row.
  std::map<lease_key, row_number> headless_;
  std::array<generation, store_shards> floors_{};
  bool floors_known_ = false;
  /// What a lease had when it was forgotten: no grant under its name is below that.
  std::map<lease_key, generation> forgotten_;
  instant grants_from_;
};

/// Passes rows on and keeps in a lease's image what it says of them: their counts and when the
/// newest was.
class image_rows final : public row_sink {
 public:
  image_rows(row_sink& to, fold::lease_image& image) : to_(to), image_(image) {}
  void on_row(const row& what, const record& after) override;

 private:
  row_sink& to_;
  fold::lease_image& image_;
};

/// The columns of `leasehold replay` (protocol.md 6), in order.
std::span<const std::string_view> replay_columns() noexcept;
/// The columns that live evidence adds, in order.
std::span<const std::string_view> live_columns() noexcept;

/// One value of an evidence row.
using cell = std::variant<std::int64_t, bool, std::string>;

/// Hears the columns of a row in their order.
using cell_sink = std::function<void(std::string_view column, const cell& value)>;

/// Gives the replay columns of a row to `out`. `step` is the scenario's step (0 in live evidence).
void write_cells(std::int64_t step, const row& what, const record& after, const cell_sink& out);
/// Gives all columns of a stored row, replay's first, then the live ones.
void write_cells(const stored_row& r, const record& after, row_number deferred_row,
                 const cell_sink& out);

}  // namespace leasehold::protocol
