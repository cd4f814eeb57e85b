// Evidence rows as readers see them: each with the record after it, which the fold of the lease's
// rows gives. The store is read at the reader's pace, never on a loop.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "leasehold/actors/store.hpp"
#include "leasehold/protocol/evidence.hpp"

namespace leasehold::server {

struct shown_row {
  protocol::stored_row row;
  protocol::record after;
  protocol::row_number deferred_row;
  std::optional<protocol::policy> chosen;  ///< of a submit row: its policy
};

/// The policies of a store by id, read once each. Any thread.
class policy_book {
 public:
  explicit policy_book(std::shared_ptr<actors::store> from) : store_(std::move(from)) {}

  /// Nothing when the store does not know the policy.
  std::optional<protocol::policy> find(protocol::policy_id id);

 private:
  std::shared_ptr<actors::store> store_;
  std::mutex mutex_;
  std::map<protocol::policy_id, protocol::policy> known_;
};

/// Goes through the rows of one tenant in order. One thread at a time.
class evidence_cursor {
 public:
  evidence_cursor(std::shared_ptr<actors::store> from, std::shared_ptr<policy_book> policies,
                  protocol::tenant_id tenant, protocol::row_number next)
      : store_(std::move(from)),
        policies_(std::move(policies)),
        tenant_(std::move(tenant)),
        next_(next) {}

  /// The next row that will be looked at.
  [[nodiscard]] protocol::row_number next() const noexcept { return next_; }
  [[nodiscard]] const protocol::tenant_id& tenant() const noexcept { return tenant_; }

  /// The tenant's rows among the next `most_read` of the store, at most `most_shown`. Rows about
  /// the store itself (policies, the clock) belong to everybody.
  actors::store_result<std::vector<shown_row>> read(std::size_t most_read, std::size_t most_shown);

  /// Of the job that a row just read is about; empty when it is about none.
  [[nodiscard]] std::string queue_of(const protocol::lease_key& key) const;

 private:
  /// So many leases are remembered before the cursor begins anew.
  static constexpr std::size_t most_leases = 100'000;

  std::optional<actors::store_error> feed(const protocol::stored_row& r);
  void learn(const protocol::stored_row& r);

  std::shared_ptr<actors::store> store_;
  std::shared_ptr<policy_book> policies_;
  protocol::tenant_id tenant_;
  protocol::row_number next_;
  protocol::fold fold_;
};

/// All rows of one lease that the log has from its base on, oldest first, up to its row `newest`.
struct lease_history {
  std::vector<shown_row> rows;
  bool complete = true;  ///< false: there are more than may be shown at once
};

/// Reads evidence. Its calls block; any thread.
class evidence_reader {
 public:
  static constexpr std::size_t most_rows_of_a_lease = 20'000;

  explicit evidence_reader(std::shared_ptr<actors::store> from);

  actors::store_result<lease_history> of_lease(const protocol::lease_key& key,
                                               protocol::row_number newest);

  /// A cursor at that row: the one that an earlier call left there, or a new one.
  std::unique_ptr<evidence_cursor> take_cursor(const protocol::tenant_id& tenant,
                                               protocol::row_number from);
  /// Leaves a cursor to whoever goes on from where it stands.
  void keep_cursor(std::unique_ptr<evidence_cursor> cursor);

 private:
  static constexpr std::size_t most_cursors = 4;

  std::shared_ptr<actors::store> store_;
  std::shared_ptr<policy_book> policies_;
  std::mutex mutex_;
  std::list<std::unique_ptr<evidence_cursor>> cursors_;  ///< the newest first
};

/// Appends the row as one line of JSON, as src/store/evidence_json.hpp has it.
void append_json_line(std::string& out, const shown_row& shown);
/// The names of all columns, then rows, as RFC 4180 CSV. A cell that a spreadsheet would take for a
/// formula gets an apostrophe in front.
std::string csv_head();
void append_csv_line(std::string& out, const shown_row& shown);

}  // namespace leasehold::server
