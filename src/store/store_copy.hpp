// A store copied from one database into another of either kind, whole and verified.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "leasehold/actors/store.hpp"
#include "src/store/store_url.hpp"
#include "src/store/verify.hpp"

namespace leasehold::storage {

struct copy_options {
  store_place from;
  store_place to;
  /// An unfinished copy that stands at `to` is emptied first; without it, it is refused.
  bool restart = false;
  /// Rows of the tables copied, rows in all, the table that is copied.
  std::function<void(std::int64_t, std::int64_t, std::string_view)> progress;
  /// Then the copy is verified: rows of the log, rows in all.
  verify_progress checking;
};

struct copy_report {
  actors::log_head head;
  std::int64_t rows = 0;     ///< of the log, verified
  std::int64_t records = 0;  ///< of the checkpoint
  std::int64_t policies = 0;
  std::int64_t dispatches = 0;
  /// The source was served meanwhile, or is a backup itself: what was granted after the copy is not
  /// in it, and it is served with --restored-backup first.
  bool is_backup = false;
};

/// Everything of one consistent view: the log with its chain, records, policies, floors, what the
/// store says about itself, and the dispatch tables with handles. Until the end the target is
/// marked, and nobody serves or reads it. The end is reached when the copy proves every decision
/// again, reaches the same head, and has as many rows of each table. On a failure the mark stays.
actors::store_result<copy_report> copy_store(const copy_options& how);

}  // namespace leasehold::storage
