// The actor between the shards and the store: hands their commit buffers over in order, says how
// each ended, tells watchers which rows are durable, and has records checkpointed behind the log.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "actors/recovery.hpp"
#include "leasehold/actors/messages.hpp"

namespace leasehold::actors {

class journal_actor final : public coordinator_actor {
 public:
  journal_actor(caf::actor_config& config, context_ptr context, std::shared_ptr<store> where,
                const recovered_leases& found);

 protected:
  actor_behavior make_behavior() override;
  void on_exit() override;
  void broken(const std::exception_ptr& what) override;

 private:
  void append(append_rows& what);
  void done(commit_done& what);
  void read_grant(ask_grant& what);
  void read_requests(ask_requests& what);
  /// What a read is called back with, on a thread of the store: tells who asked for it.
  template <class Answer, class Result>
  std::function<void(store_result<Result>)> bring_back(place back_to, std::uint64_t entry);
  void begin_checkpoint();
  void write_next_part();
  void checkpoint_round();
  void part_written(const store_result<bool>& result);
  void write(checkpoint_slice slice);
  void probe();
  // ---- journal_retention.cpp
  void begin_retention();
  void cut_behind(const cut_found& said);
  void bases_said(const bases_written& said);
  void was_cut(const cut_done& said);
  void store_failed(bool& which, const store_error& error);
  void store_is_back();

  context_ptr context_;
  options_ptr options_;
  std::shared_ptr<store> store_;
  place self_;
  protocol::row_number last_row_;
  protocol::row_number checkpointed_;
  std::map<std::int64_t, watch_rows> watches_;
  protocol::instant
      trouble_told_;           ///< when it was last said that the store takes no write; 0: it does
  bool commits_fail_ = false;  ///< the newest one did
  bool rest_fails_ = false;    ///< anything else did, and no checkpoint was written since
  // A checkpoint on its way: the shards' parts, written one by one; a failed one is written again.
  bool checkpointing_ = false;
  bool due_again_ = false;  ///< the next one was to begin while this one is on its way
  bool writing_ = false;
  bool probing_ =
      false;  ///< what is written is no part, it only asks whether the store takes writes
  protocol::row_number checkpoint_upto_;
  std::size_t shards_left_ = 0;
  std::deque<checkpoint_part> parts_;
  store_state checkpoint_state_;  ///< of the checkpoint on its way, else of the newest
  // A cut of the log on its way: where, and the shards that have not yet written their base rows.
  bool cutting_ = false;
  protocol::row_number cut_upto_;
  protocol::row_number anchor_;
  std::size_t bases_left_ = 0;
  bool bases_failed_ = false;
};

}  // namespace leasehold::actors
