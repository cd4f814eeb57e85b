// The one thread that writes a SQLite store: group commit, checkpoint slices between commits, and
// the write-ahead log kept short.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>
#include <vector>

#include "leasehold/actors/store.hpp"
#include "src/store/kept_head.hpp"
#include "src/store/log_writer.hpp"
#include "src/store/schema.hpp"
#include "src/store/sqlite_connection.hpp"
#include "src/store/sqlite_dispatch.hpp"
#include "src/store/sqlite_dispatch_rows.hpp"

namespace leasehold::storage {

class sqlite_writer final : public log_writer {
 public:
  /// `head`: where the log ends. `directory`: where the head is kept. `wal_pages`: past this many
  /// the write-ahead log is copied into the database.
  sqlite_writer(connection db, store_facts facts, actors::log_head head,
                std::filesystem::path directory, int wal_pages);
  /// Writes what still waits, ends the thread, and leaves one file that needs no other; when it has
  /// never written, every file as it is.
  ~sqlite_writer();

  /// In a transaction with the batches that wait. False: too many wait, and nothing is called.
  [[nodiscard]] bool dispatch(dispatch_turn what);

 private:
  struct taken_turn {
    dispatch_turn what;
    std::optional<actors::store_error> fault;
  };

  std::optional<actors::store_error> write(const std::vector<actors::stored_batch>& pieces,
                                           const batches& of,
                                           const actors::log_head& after) override;
  std::optional<actors::store_error> write_records(const actors::checkpoint_slice& what,
                                                   std::size_t begin, std::size_t end,
                                                   bool finishes, store_facts& facts) override;
  actors::store_result<std::int64_t> delete_batches(protocol::row_number upto,
                                                    store_facts& facts) override;
  [[nodiscard]] bool has_more() const override { return !turns_waiting_.empty(); }
  void take_more() override;
  void answer_more(const std::optional<actors::store_error>& fault) override;
  void rest() override;
  /// Somebody hears here if the log cannot be copied; nobody may ask for a commit soon.
  void settle_slice() override { shorten_wal(); }
  void wake() override { busy_since_ = steady::now(); }

  std::optional<actors::store_error> insert(const actors::stored_batch& piece);
  std::optional<actors::store_error> insert_policies(const actors::batch& what);
  std::optional<actors::store_error> apply_dispatches(const actors::batch& what);
  /// A fault: the transaction is lost. What fails of the turn alone is kept in it.
  std::optional<actors::store_error> take_part(taken_turn& turn);
  std::optional<actors::store_error> settle_failed_commit(actors::store_error fault);
  std::optional<actors::store_error> write_record(const actors::checkpoint_entry& entry,
                                                  store_facts& facts);
  std::optional<actors::store_error> forget_records(store_facts& facts);
  std::optional<actors::store_error> remove_from_sums(const protocol::lease_key& key,
                                                      store_facts& facts);
  void shorten_wal();
  void leave_lock_free();

  connection db_;
  statement insert_batch_;
  statement insert_policy_;
  statement find_record_;
  statement put_record_;
  statement delete_record_;
  sqlite_dispatch_rows dispatch_rows_;
  std::deque<dispatch_turn> turns_waiting_;  ///< under the lock
  std::vector<taken_turn> turns_;            ///< of the transaction that runs
  bool has_written_ = false;
  int wal_limit_pages_;
  int wal_pages_ = 0;
  int next_shortening_ = 0;
  steady::time_point busy_since_{};
  std::filesystem::path directory_;
  head_keeper heads_;
};

}  // namespace leasehold::storage
