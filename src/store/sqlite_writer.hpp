// The one thread that writes a SQLite store: group commit, checkpoint slices between commits, and
// the write-ahead log kept short.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "leasehold/actors/store.hpp"
#include "src/store/fair_turns.hpp"
#include "src/store/kept_head.hpp"
#include "src/store/schema.hpp"
#include "src/store/sqlite_connection.hpp"
#include "src/store/sqlite_dispatch.hpp"
#include "src/store/sqlite_dispatch_rows.hpp"

namespace leasehold::storage {

class sqlite_writer {
 public:
  using commit_done = std::function<void(actors::store_result<actors::committed>)>;
  using slice_done = std::function<void(actors::store_result<bool>)>;
  using cut_done = std::function<void(actors::store_result<protocol::row_number>)>;

  /// Starts the thread. `head`: where the log ends.
  /// `directory`: where the head is kept. `wal_pages`: past this many the write-ahead log is copied
  /// into the database.
  sqlite_writer(connection db, store_facts facts, actors::log_head head,
                std::filesystem::path directory, int wal_pages);
  /// Writes what still waits, ends the thread, and leaves one file that needs no other; when it has
  /// never written, every file as it is.
  ~sqlite_writer();
  sqlite_writer(const sqlite_writer&) = delete;
  sqlite_writer& operator=(const sqlite_writer&) = delete;

  void commit(actors::batch what, commit_done done);
  void checkpoint(actors::checkpoint_slice slice, slice_done done);
  void cut(protocol::row_number upto, cut_done done);
  /// In a transaction with the batches that wait. False: too many wait, and nothing is called.
  [[nodiscard]] bool dispatch(dispatch_turn what);
  [[nodiscard]] actors::log_head head() const;

 private:
  using steady = std::chrono::steady_clock;
  struct waiting_batch {
    actors::batch what;
    commit_done done;
  };
  struct waiting_slice {
    actors::checkpoint_slice what;
    slice_done done;
    std::size_t written = 0;
  };

  struct waiting_cut {
    protocol::row_number upto;
    cut_done done;
  };

  struct taken_turn {
    dispatch_turn what;
    std::optional<actors::store_error> fault;
  };

  void run();
  [[nodiscard]] bool has_commits() const { return !batches_.empty() || !turns_waiting_.empty(); }
  [[nodiscard]] bool is_behind() const { return !slices_.empty() || !cuts_.empty(); }
  /// Some of a checkpoint or of a cut.
  void write_behind(std::unique_lock<std::mutex>& lock);
  template <class Waiting, class Write>
  void write_one(std::deque<Waiting>& waiting, std::unique_lock<std::mutex>& lock, Write write);
  bool cut_some(const waiting_cut& what);
  actors::store_result<std::int64_t> delete_batches(protocol::row_number upto, store_facts& facts);
  bool wait_for_work(std::unique_lock<std::mutex>& lock);
  std::vector<waiting_batch> take_batches();
  std::vector<taken_turn> take_turns();
  void commit_all(const std::vector<waiting_batch>& waiting, std::vector<taken_turn>& turns);
  static void answer_all(const std::vector<waiting_batch>& waiting, std::int64_t first_row,
                         const std::optional<actors::store_error>& fault,
                         const actors::log_head& head);
  std::optional<actors::store_error> write_batches(const std::vector<waiting_batch>& waiting,
                                                   std::vector<taken_turn>& turns,
                                                   actors::log_head& head);
  std::optional<actors::store_error> insert(const actors::stored_batch& piece);
  std::optional<actors::store_error> insert_policies(const actors::batch& what);
  std::optional<actors::store_error> apply_dispatches(const actors::batch& what);
  /// A fault: the transaction is lost. What fails of the turn alone is kept in it.
  std::optional<actors::store_error> take_part(taken_turn& turn);
  std::optional<actors::store_error> settle_failed_commit(actors::store_error fault);
  bool write_slice(waiting_slice& slice);
  std::optional<actors::store_error> write_records(waiting_slice& slice);
  std::optional<actors::store_error> write_record(const actors::checkpoint_entry& entry,
                                                  store_facts& facts);
  std::optional<actors::store_error> forget_records(store_facts& facts);
  std::optional<actors::store_error> remove_from_sums(const protocol::lease_key& key,
                                                      store_facts& facts);
  void shorten_wal();
  void leave_lock_free();

  connection db_;
  store_facts facts_;
  actors::log_head head_;
  statement insert_batch_;
  statement insert_policy_;
  statement find_record_;
  statement put_record_;
  statement delete_record_;
  sqlite_dispatch_rows dispatch_rows_;
  /// Set by an fsync that failed: nothing is written any more.
  std::optional<actors::store_error> fatal_;
  bool has_written_ = false;
  std::set<protocol::lease_key> forgotten_;  ///< until the last slice of the checkpoint
  int wal_limit_pages_;
  int wal_pages_ = 0;
  int next_shortening_ = 0;
  steady::time_point busy_since_{};
  fair_turns turns_;
  bool cut_was_last_ = false;  ///< of slices and cuts
  std::filesystem::path directory_;
  head_keeper heads_;

  mutable std::mutex mutex_;
  std::condition_variable work_;
  std::deque<waiting_batch> batches_;
  std::deque<waiting_slice> slices_;
  std::deque<waiting_cut> cuts_;
  std::deque<dispatch_turn> turns_waiting_;
  actors::log_head published_head_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace leasehold::storage
