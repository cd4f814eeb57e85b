// The actor between the shards and the store: hands their commit buffers over in order, says how
// each ended, tells watchers which rows are durable, and has records checkpointed behind the log.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "leasehold/actors/messages.hpp"

namespace leasehold::actors {

class journal_actor final : public coordinator_actor {
 public:
  /// `checkpointed`: the records of the store are as of this row.
  journal_actor(caf::actor_config& config, context_ptr context, std::shared_ptr<store> where,
                protocol::row_number checkpointed, protocol::row_number last_row);

 protected:
  actor_behavior make_behavior() override;
  void on_exit() override;
  void broken(const std::exception_ptr& what) override;

 private:
  void append(append_rows& what);
  void done(commit_done& what);
  void read_grant(ask_grant& what);
  void begin_checkpoint();
  void write_next_part();
  void part_written(bool ok);
  void write(checkpoint_slice slice);
  void probe();
  void store_is_back();

  context_ptr context_;
  std::shared_ptr<store> store_;
  place self_;
  protocol::row_number last_row_;
  protocol::row_number checkpointed_;
  std::map<std::int64_t, watch_rows> watches_;
  protocol::instant
      trouble_told_;  ///< when it was last said that the store takes no write; 0: it does
  // A checkpoint on its way: the shards' parts, written one by one; a failed one is written again.
  bool checkpointing_ = false;
  bool writing_ = false;
  bool probing_ =
      false;  ///< what is written is no part, it only asks whether the store takes writes
  protocol::row_number checkpoint_upto_;
  std::size_t shards_left_ = 0;
  std::deque<checkpoint_part> parts_;
};

}  // namespace leasehold::actors
