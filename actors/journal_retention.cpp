// The log is cut at its front once its rows are old enough: first every lease whose history begins
// there gets a base row, then the batches go (architecture.md 4).
#include <algorithm>
#include <utility>

#include "actors/journal_actor.hpp"

namespace leasehold::actors {

void journal_actor::begin_retention() {
  const auto keep = options_->retention;
  if (cutting_ || keep.ms == 0) return;
  cutting_ = true;
  store_->find_row_before(
      context_->clock->now() - keep, [link = context_->link, thread = context_->thread,
                                      self = self_.who](store_result<protocol::row_number> found) {
        link->post(thread, [self, found = std::move(found)] { tell(self, cut_found{found}); });
      });
}

void journal_actor::cut_behind(const cut_found& said) {
  if (const auto* error = std::get_if<store_error>(&said.upto)) store_failed(rest_fails_, *error);
  const auto* found = std::get_if<protocol::row_number>(&said.upto);
  if (found == nullptr || std::min(*found, checkpointed_) <= anchor_) {
    cutting_ = false;
    return;
  }
  cut_upto_ = std::min(*found, checkpointed_);
  bases_left_ = context_->shards.size();
  bases_failed_ = false;
  for (const auto& shard : context_->shards) tell(*context_, shard, write_bases{cut_upto_});
}

void journal_actor::bases_said(const bases_written& said) {
  if (!cutting_ || said.upto != cut_upto_) return;
  if (!said.all) bases_failed_ = true;
  if (--bases_left_ > 0) return;
  if (bases_failed_) {
    cutting_ = false;
    return;
  }
  store_->cut(cut_upto_, [link = context_->link, thread = context_->thread,
                          self = self_.who](store_result<protocol::row_number> anchor) {
    link->post(thread, [self, anchor = std::move(anchor)] { tell(self, cut_done{anchor}); });
  });
}

void journal_actor::was_cut(const cut_done& said) {
  cutting_ = false;
  if (const auto* anchor = std::get_if<protocol::row_number>(&said.anchor)) {
    anchor_ = *anchor;
    context_->counters->first_row.set(anchor_.value + 1);
  } else {
    store_failed(rest_fails_, std::get<store_error>(said.anchor));
  }
}

}  // namespace leasehold::actors
