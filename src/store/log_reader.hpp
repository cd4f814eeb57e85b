// Reading the log and the checkpoint of a store, whatever its database: the walks along its rows
// are the same, and how a batch is found is the database's.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "leasehold/actors/store.hpp"
#include "src/store/store_facts.hpp"

namespace leasehold::storage {

/// A record as the checkpoint has it, with its bytes.
struct stored_record {
  protocol::lease_key key;
  protocol::row_number last_row;
  std::uint64_t check = 0;
  std::string_view image;  ///< lives until the next one
};

/// One connection. One thread at a time; every call is one consistent view.
class log_reader {
 public:
  virtual ~log_reader() = default;

  /// Makes what is read while it lives one consistent view, when `fault` is nothing.
  class view {
   public:
    explicit view(log_reader& of) : of_(of), fault_(of.begin_view()) {}
    ~view() { of_.end_view(); }
    view(const view&) = delete;
    view& operator=(const view&) = delete;
    [[nodiscard]] const std::optional<actors::store_error>& fault() const { return fault_; }

   private:
    log_reader& of_;
    std::optional<actors::store_error> fault_;
  };

  /// Ends before the row `after`.
  actors::store_result<std::vector<protocol::stored_row>> rows_of_lease(
      const protocol::lease_key& key, protocol::row_number newest, std::size_t limit,
      protocol::row_number after = {});
  /// Begins with the oldest row when `from` was cut.
  actors::store_result<std::vector<protocol::stored_row>> rows_from(protocol::row_number from,
                                                                    std::size_t limit);
  /// From the one that holds `from` on.
  actors::store_result<std::vector<actors::stored_batch>> batches_from(protocol::row_number from,
                                                                       std::size_t limit);
  /// The newest batch that ends before `row`; nothing when none does.
  actors::store_result<std::optional<actors::stored_batch>> batch_before(protocol::row_number row);
  /// The last row of the newest batch written before `at`; 0 when none was.
  actors::store_result<protocol::row_number> row_before(protocol::instant at);

  virtual actors::store_result<store_facts> facts() = 0;
  /// The newest piece of the log; the anchor when there is none.
  virtual actors::store_result<actors::log_head> head(const store_facts& facts) = 0;
  virtual actors::store_result<std::optional<protocol::policy>> find_policy(
      protocol::policy_id id) = 0;
  /// The image of a record in the checkpoint.
  virtual actors::store_result<std::optional<std::string>> find_image(
      const protocol::lease_key& key) = 0;
  /// Every record, ordered by its key.
  virtual std::optional<actors::store_error> each_record(
      const std::function<void(const stored_record&)>& out) = 0;
  /// Every policy; `chosen` is nothing when its text cannot be read.
  virtual std::optional<actors::store_error> each_policy(
      const std::function<void(protocol::policy_id, std::optional<protocol::policy>)>& out) = 0;

  /// The store is not what was written: where, what, and the way out.
  [[nodiscard]] virtual actors::store_error damaged(std::string_view what) const = 0;
  /// False: its connection is lost, and the reader of no use any more.
  [[nodiscard]] virtual bool usable() { return true; }

 protected:
  /// When a batch was written, and its last row.
  struct written {
    protocol::row_number last_row;
    protocol::instant at;
  };
  using found_batch = actors::store_result<std::optional<actors::stored_batch>>;

  virtual std::optional<actors::store_error> begin_view() = 0;
  virtual void end_view() = 0;
  /// The newest batch whose first row is `row` or before it.
  virtual found_batch batch_begun_by(protocol::row_number row) = 0;
  /// At most `limit` batches whose first row is `row` or after it, in order.
  virtual actors::store_result<std::vector<actors::stored_batch>> batches_begun_at(
      protocol::row_number row, std::size_t limit) = 0;
  /// As batch_begun_by, without the rows.
  virtual actors::store_result<std::optional<written>> written_by(protocol::row_number row) = 0;
  /// Names the database in sentences.
  [[nodiscard]] virtual std::string place() const = 0;

 private:
  found_batch batch_holding(protocol::row_number row);
  [[nodiscard]] actors::store_error broken(protocol::row_number row) const;
};

using open_reader = std::function<actors::store_result<std::unique_ptr<log_reader>>()>;

/// A few readers for any number of threads. A caller waits while all of them are taken.
class reader_pool {
 public:
  explicit reader_pool(open_reader open, std::size_t most = 4)
      : open_(std::move(open)), most_(most) {}

  /// Runs `read` with a reader; Result is a store_result.
  template <class Result>
  Result with(const std::function<Result(log_reader&)>& read) {
    auto taken = take();
    if (auto* fault = std::get_if<actors::store_error>(&taken)) return *fault;
    auto& reader = std::get<std::unique_ptr<log_reader>>(taken);
    Result result = read(*reader);
    give_back(std::move(reader));
    return result;
  }

 private:
  actors::store_result<std::unique_ptr<log_reader>> take();
  void give_back(std::unique_ptr<log_reader> reader);

  open_reader open_;
  std::size_t most_;
  std::mutex mutex_;
  std::condition_variable free_;
  std::vector<std::unique_ptr<log_reader>> idle_;
  std::size_t made_ = 0;
};

}  // namespace leasehold::storage
