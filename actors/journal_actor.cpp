#include "actors/journal_actor.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace leasehold::actors {

journal_actor::journal_actor(caf::actor_config& config, context_ptr context,
                             std::shared_ptr<store> where, const recovered_leases& found)
    : coordinator_actor(config),
      context_(std::move(context)),
      options_(context_->options),
      store_(std::move(where)),
      last_row_(found.last_row),
      checkpointed_(found.checkpoint),
      checkpoint_state_(found.state),
      anchor_(found.anchor) {}

actor_behavior journal_actor::make_behavior() {
  self_ = {context_->thread, caf::actor_cast<actor_handle>(this)};
  delayed_send(this, std::chrono::milliseconds(options_->checkpoint_interval.ms), checkpoint_due{});
  delayed_send(this, std::chrono::milliseconds(options_->retention_check.ms), retention_due{});
  context_->counters->first_row.set(anchor_.value + 1);
  return {
      [this](append_rows& what) { append(what); },
      [this](commit_done& what) { done(what); },
      [this](ask_grant& what) { read_grant(what); },
      [this](ask_requests& what) { read_requests(what); },
      [this](const checkpoint_due&) {
        checkpoint_round();
        delayed_send(this, std::chrono::milliseconds(options_->checkpoint_interval.ms),
                     checkpoint_due{});
      },
      [this](checkpoint_part& part) {
        if (part.last) {
          --shards_left_;
          for (std::size_t i = 0; i < part.state.floors.size(); ++i) {
            auto& floor = checkpoint_state_.floors[i];
            floor = std::max(floor, part.state.floors[i]);
          }
        }
        parts_.push_back(std::move(part));
        write_next_part();
      },
      [this](const checkpoint_written& said) { part_written(said.result); },
      [this](const retention_due&) {
        begin_retention();
        delayed_send(this, std::chrono::milliseconds(options_->retention_check.ms),
                     retention_due{});
      },
      [this](const journal_now& what) {
        if (what.checkpoint) checkpoint_round();
        if (what.retention) begin_retention();
      },
      [this](const read_failed& said) { store_failed(rest_fails_, said.error); },
      [this](const cut_found& said) { cut_behind(said); },
      [this](const bases_written& said) { bases_said(said); },
      [this](const cut_done& said) { was_cut(said); },
      [this](watch_rows& watch) {
        const auto id = watch.id;
        context_->link->post(watch.thread,
                             [hear = watch.on_rows, last = last_row_] { hear(last); });
        watches_.insert_or_assign(id, std::move(watch));
      },
      [this](const unwatch_rows& watch) { watches_.erase(watch.id); },
      [this](const options_changed& changed) { options_ = changed.options; },
  };
}

void journal_actor::on_exit() {
  self_.who = nullptr;
  // Commits on their way keep this actor: the store must not live as long as they do, because they
  // end with it.
  store_ = nullptr;
  watches_.clear();
  parts_.clear();
}

void journal_actor::broken(const std::exception_ptr&) {
  context_->on_fatal("the journal actor failed");
}

void journal_actor::append(append_rows& what) {
  commit_done said{what.back_to, what.buffer, what.what.rows, 0, context_->clock->now(), {}};
  for (const auto& group : what.what.groups) said.bytes += static_cast<std::int64_t>(group.size());
  store_->commit(std::move(what.what), [link = context_->link, thread = context_->thread,
                                        self = self_.who,
                                        said = std::move(said)](store_result<committed> result) {
    // On the store's thread: everything goes over to ours.
    auto message = said;
    message.result = std::move(result);
    link->post(thread,
               [self, message = std::move(message)]() mutable { tell(self, std::move(message)); });
  });
}

template <class Answer, class Result>
std::function<void(store_result<Result>)> journal_actor::bring_back(place back_to,
                                                                    std::uint64_t entry) {
  return [link = context_->link, back_to = std::move(back_to), entry, thread = context_->thread,
          self = self_.who](store_result<Result> result) {
    const auto* error = std::get_if<store_error>(&result);
    if (error != nullptr && error->what != store_error::kind::busy) {
      link->post(thread, [self, error = *error] { tell(self, read_failed{error}); });
    }
    Answer said{entry, std::move(result)};
    link->post(back_to.thread, [who = back_to.who, said = std::move(said)] { tell(who, said); });
  };
}

void journal_actor::read_grant(ask_grant& what) {
  store_->read_grant(std::move(what.key), what.newest,
                     bring_back<grant_answer, stored_grant>(what.back_to, what.entry));
}

void journal_actor::read_requests(ask_requests& what) {
  store_->read_requests(
      std::move(what.key), what.newest, what.gen, what.since,
      bring_back<requests_answer, std::vector<protocol::past_request>>(what.back_to, what.entry));
}

void journal_actor::done(commit_done& what) {
  if (const auto* durable = std::get_if<committed>(&what.result)) {
    // The head may be that of later batches of the same commit, which the shards have not heard of
    // yet: a checkpoint up to there would leave out their leases.
    if (what.rows > 0) last_row_ = {durable->first_row.value + what.rows - 1};
    auto& counted = *context_->counters;
    counted.commits.add();
    counted.rows.add(what.rows);
    counted.row_bytes.add(what.bytes);
    counted.commit_time.observe_us((context_->clock->now().ms - what.handed_over.ms) * 1000);
    context_->counters->last_row.set(last_row_.value);
    commits_fail_ = false;
    store_is_back();
    for (const auto& [id, watch] : watches_) {
      context_->link->post(watch.thread, [hear = watch.on_rows, last = last_row_] { hear(last); });
    }
  } else {
    const auto& error = std::get<store_error>(what.result);
    context_->counters->commit_failures.add();
    store_failed(commits_fail_, error);
  }
  tell(*context_, what.back_to, journal_answer{what.buffer, std::move(what.result)});
}

void journal_actor::store_failed(bool& which, const store_error& error) {
  which = true;
  context_->counters->store_failing.set(1);
  const auto now = context_->clock->now();
  if ((!trouble_told_ || trouble_told_ + protocol::duration{10'000} <= now) &&
      context_->on_store_trouble) {
    trouble_told_ = now;
    context_->on_store_trouble(error.sentence);
  }
  if (error.what == store_error::kind::fatal) context_->on_fatal(error.sentence);
}

void journal_actor::store_is_back() {
  if (commits_fail_ || rest_fails_) return;
  context_->counters->store_failing.set(0);
  if (std::exchange(trouble_told_, {}) && context_->on_store_trouble)
    context_->on_store_trouble({});
}

void journal_actor::probe() {
  // Nobody may ask for a write while we say that we are not ready: so we ask ourselves.
  if (context_->counters->store_failing.value() == 0 || writing_ || checkpointing_) return;
  probing_ = true;
  checkpoint_slice again;
  again.upto = checkpointed_;
  again.state = checkpoint_state_;
  again.last = true;
  write(std::move(again));
}

void journal_actor::checkpoint_round() {
  begin_checkpoint();
  write_next_part();
  probe();
}

void journal_actor::begin_checkpoint() {
  if (checkpointing_) {
    due_again_ = true;
    return;
  }
  due_again_ = false;
  if (last_row_ == checkpointed_) return;
  checkpointing_ = true;
  checkpoint_upto_ = last_row_;
  checkpoint_state_ = {{}, context_->grants_from};
  shards_left_ = context_->shards.size();
  for (const auto& shard : context_->shards) {
    tell(*context_, shard, collect_checkpoint{checkpoint_upto_});
  }
}

void journal_actor::write_next_part() {
  if (writing_ || parts_.empty()) return;
  checkpoint_slice slice;
  slice.changed = parts_.front().changed;
  slice.forgotten = parts_.front().forgotten;
  slice.upto = checkpoint_upto_;
  slice.last = shards_left_ == 0 && parts_.size() == 1;
  slice.state = checkpoint_state_;
  write(std::move(slice));
}

void journal_actor::write(checkpoint_slice slice) {
  writing_ = true;
  const auto thread = context_->thread;
  store_->checkpoint(std::move(slice), [link = context_->link, thread,
                                        self = self_.who](const store_result<bool>& result) {
    link->post(thread, [self, result] { tell(self, checkpoint_written{result}); });
  });
}

void journal_actor::part_written(const store_result<bool>& result) {
  writing_ = false;
  const bool probed = std::exchange(probing_, false);
  if (const auto* error = std::get_if<store_error>(&result)) {
    // What the shards gave is kept: the same part is written again with the next round.
    store_failed(rest_fails_, *error);
    return;
  }
  commits_fail_ = rest_fails_ = false;
  store_is_back();
  if (probed) return;
  if (!parts_.front().last) tell_first(*context_, parts_.front().from, collect_more{});
  parts_.pop_front();
  if (parts_.empty() && shards_left_ == 0) {
    checkpointing_ = false;
    checkpointed_ = checkpoint_upto_;
    context_->counters->checkpoint_row.set(checkpointed_.value);
    if (due_again_) begin_checkpoint();
    return;
  }
  write_next_part();
}

}  // namespace leasehold::actors
