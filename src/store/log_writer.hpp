// The one thread that writes a store, whatever its database: group commit of what arrived while the
// commit before it ran, and slices of checkpoints and cuts between commits.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "leasehold/actors/store.hpp"
#include "src/store/fair_turns.hpp"
#include "src/store/store_facts.hpp"

namespace leasehold::storage {

/// Batches that one transaction removes from the front of the log.
inline constexpr std::int64_t batches_cut_at_once = 64;

/// Whoever derives from it calls start() at the end of its constructor and stop() at the begin of
/// its destructor: the thread calls what it overrides.
class log_writer {
 public:
  using commit_done = std::function<void(actors::store_result<actors::committed>)>;
  using slice_done = std::function<void(actors::store_result<bool>)>;
  using cut_done = std::function<void(actors::store_result<protocol::row_number>)>;

  log_writer(const log_writer&) = delete;
  log_writer& operator=(const log_writer&) = delete;

  void commit(actors::batch what, commit_done done);
  void checkpoint(actors::checkpoint_slice slice, slice_done done);
  void cut(protocol::row_number upto, cut_done done);
  [[nodiscard]] actors::log_head head() const;

 protected:
  using steady = std::chrono::steady_clock;
  using batches = std::vector<const actors::batch*>;

  /// `head`: where the log ends.
  log_writer(store_facts facts, actors::log_head head);
  ~log_writer() = default;
  void start();
  /// Writes what still waits and ends the thread.
  void stop();

  /// One transaction: the pieces, and what else the batches that they were cut from hold. On an
  /// error nothing of it is there, unless the error is fatal or deposed. `after`: the head then.
  virtual std::optional<actors::store_error> write(const std::vector<actors::stored_batch>& pieces,
                                                   const batches& of,
                                                   const actors::log_head& after) = 0;
  /// One transaction: the records [begin, end) of a slice, with `finishes` also what was forgotten
  /// since the checkpoint began, and the facts, of which the sums of records are filled in here.
  virtual std::optional<actors::store_error> write_records(const actors::checkpoint_slice& what,
                                                           std::size_t begin, std::size_t end,
                                                           bool finishes, store_facts& facts) = 0;
  /// One transaction: removes at most batches_cut_at_once from the front, none that has a row above
  /// `upto`, moves the anchor in `facts`, and yields how many they were.
  virtual actors::store_result<std::int64_t> delete_batches(protocol::row_number upto,
                                                            store_facts& facts) = 0;
  /// What else a commit may take along, for whoever has such a thing: with the lock held, whether
  /// some waits, and taking some of it into the next `write`. Answered without the lock.
  [[nodiscard]] virtual bool has_more() const { return false; }
  virtual void take_more() {}
  virtual void answer_more(const std::optional<actors::store_error>& /*fault*/) {}
  /// Runs `add` with the lock; when it says true there is more work.
  bool add_work(const std::function<bool()>& add);
  /// Between any two of the above, without a lock.
  virtual void rest() {}
  /// Before a slice that was written is answered.
  virtual void settle_slice() {}
  /// Work came after a time without any.
  virtual void wake() {}

  /// Nothing is written any more after this: what is durable is not known, or belongs to others.
  void give_up(const actors::store_error& why) { ended_ = why; }

  store_facts facts_;
  actors::log_head head_;
  std::optional<actors::store_error> ended_;
  std::set<protocol::lease_key> forgotten_;  ///< until the last slice of the checkpoint

 private:
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

  void run();
  [[nodiscard]] bool has_commits() const { return !batches_.empty() || has_more(); }
  [[nodiscard]] bool is_behind() const { return !slices_.empty() || !cuts_.empty(); }
  bool wait_for_work(std::unique_lock<std::mutex>& lock);
  std::vector<waiting_batch> take_batches();
  void commit_all(const std::vector<waiting_batch>& waiting);
  std::optional<actors::store_error> write_waiting(const std::vector<waiting_batch>& waiting,
                                                   actors::log_head& head);
  static void answer_all(const std::vector<waiting_batch>& waiting, std::int64_t first_row,
                         const std::optional<actors::store_error>& fault,
                         const actors::log_head& head);
  /// Some of a checkpoint or of a cut.
  void write_behind(std::unique_lock<std::mutex>& lock);
  template <class Waiting, class Write>
  void write_one(std::deque<Waiting>& waiting, std::unique_lock<std::mutex>& lock, Write write);
  bool cut_some(const waiting_cut& what);
  bool write_slice(waiting_slice& slice);
  std::optional<actors::store_error> write_some(waiting_slice& slice);
  /// Remembers an error after which nothing is written.
  void look_at(const actors::store_error& fault);

  fair_turns turns_;
  bool cut_was_last_ = false;  ///< of slices and cuts

  mutable std::mutex mutex_;
  std::condition_variable work_;
  std::deque<waiting_batch> batches_;
  std::deque<waiting_slice> slices_;
  std::deque<waiting_cut> cuts_;
  actors::log_head published_head_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace leasehold::storage
