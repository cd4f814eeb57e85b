// What the stores have in common whatever their database: recovery and every read of the log.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/store/log_check.hpp"
#include "src/store/log_reader.hpp"
#include "src/store/read_pool.hpp"

namespace leasehold::storage {

/// A store without its writer. Whoever derives from it calls end_reads() before its writer ends.
class log_store : public actors::store {
 public:
  /// `opens` makes a reader; `head`: where the log ends as it is opened.
  log_store(open_reader opens, std::size_t readers, store_facts facts, actors::log_head head,
            std::function<void(std::string)> on_damage);

  actors::store_result<actors::recovered_head> recover(
      const std::function<void(const actors::store_state&)>& on_state,
      const std::function<void(actors::checkpoint_entry&&)>& on_record,
      const std::function<void(protocol::policy_id, const protocol::policy&)>& on_policy,
      const std::function<void(actors::stored_batch&&)>& on_batch) final;

  void read_grant(protocol::lease_key key, protocol::row_number newest,
                  std::function<void(actors::store_result<actors::stored_grant>)> done) final;
  void read_requests(
      protocol::lease_key key, protocol::row_number newest, protocol::generation gen,
      protocol::instant since,
      std::function<void(actors::store_result<std::vector<protocol::past_request>>)> done) final;
  void find_row_before(protocol::instant at,
                       std::function<void(actors::store_result<protocol::row_number>)> done) final;

  actors::store_result<std::optional<protocol::policy>> find_policy(protocol::policy_id id) final;
  actors::store_result<std::vector<protocol::stored_row>> rows_of_lease(
      const protocol::lease_key& key, protocol::row_number newest, std::size_t limit) final;
  actors::store_result<std::vector<protocol::stored_row>> rows_from(protocol::row_number from,
                                                                    std::size_t limit) final;
  actors::store_result<std::vector<actors::stored_batch>> batches_from(protocol::row_number from,
                                                                       std::size_t limit) final;

 protected:
  /// Ends the check of the log, finishes the look-up that runs and drops those that wait.
  void end_reads();
  [[nodiscard]] reader_pool& readers() noexcept { return readers_; }

 private:
  /// Reads on the thread of look-ups, or says busy at once.
  template <class Result>
  void look_up(std::function<void(Result)> done, std::function<Result(log_reader&)> read);

  open_reader opens_;
  store_facts facts_;
  actors::log_head head_at_start_;
  std::function<void(std::string)> on_damage_;
  reader_pool readers_;
  read_pool lookups_{1};  ///< ends before the readers, which it uses
  std::optional<log_check> check_;
};

}  // namespace leasehold::storage
