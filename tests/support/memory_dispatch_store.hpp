// The tables of cancellation dispatch in memory, with faults to order.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "leasehold/actors/dispatch_rows.hpp"

namespace leasehold::tests {

/// Any thread may call it; `done` runs inside the call, never under the lock.
class memory_dispatch_store final : public actors::dispatch_store {
 public:
  /// The coordinator's clock. Until it is set: the newest time of a change that was applied.
  void set_clock(std::function<protocol::instant()> now) {
    const std::lock_guard lock(mutex_);
    clock_ = std::move(now);
  }

  /// What a batch has, in its order.
  void apply(const std::vector<protocol::dispatch_change>& changes) {
    const std::lock_guard lock(mutex_);
    for (const auto& each : changes) {
      newest_ = std::max(newest_, each.at);
      actors::apply_change(rows_, each);
    }
  }

  // ---- faults

  /// The next call fails with this, whichever it is; nothing is done. Again: the one after it.
  void fail_next(actors::store_error::kind what) {
    const std::lock_guard lock(mutex_);
    failures_.push_back(what);
  }
  /// The next call is done, and answered as if it had not been.
  void lose_next_answer() {
    const std::lock_guard lock(mutex_);
    loses_answer_ = true;
  }
  /// No event can be appended until it is told again.
  void refuse_events(bool refuses) {
    const std::lock_guard lock(mutex_);
    rows_.refuses_events = refuses;
  }

  // ---- what is stored

  /// With its token.
  [[nodiscard]] std::optional<protocol::dispatch_record> stored(
      const protocol::lease_key& key) const {
    const std::lock_guard lock(mutex_);
    const auto found = rows_.records.find(key);
    return found == rows_.records.end() ? std::nullopt : std::optional(found->second);
  }
  [[nodiscard]] std::vector<protocol::dispatch_event> events_of(
      const protocol::lease_key& key) const {
    const std::lock_guard lock(mutex_);
    std::vector<protocol::dispatch_event> found;
    for (const auto& [at, event] : rows_.events) {
      if (at.first == key) found.push_back(event);
    }
    return found;
  }
  [[nodiscard]] std::optional<protocol::process_handle> handle_of(const protocol::lease_key& key,
                                                                  protocol::generation gen) const {
    const std::lock_guard lock(mutex_);
    const auto found = rows_.handles.find({key, gen});
    return found == rows_.handles.end() ? std::nullopt : std::optional(found->second);
  }

  // ---- actors::dispatch_store

  actors::store_result<protocol::instant> now() override {
    const std::lock_guard lock(mutex_);
    return time();
  }

  void page(actors::dispatch_query what, then<actors::dispatch_page> done) override {
    answer<actors::dispatch_page>(done, [&]() -> actors::store_result<actors::dispatch_page> {
      const auto after = actors::key_of(what.from);
      if (!after) return actors::unknown_cursor();
      const auto limit = actors::bounded_page(what.limit);
      actors::dispatch_page found;
      for (const auto& [key, record] : rows_.records) {
        if (key <= *after || !actors::fits(what, record, time())) continue;
        if (found.records.size() == limit) {
          found.next = actors::cursor_after(found.records.back().key);
          break;
        }
        found.records.push_back(shown(record));
      }
      return found;
    });
  }

  void claim(std::vector<protocol::dispatch_claim> asked, protocol::dispatch_pace pace,
             then<std::vector<actors::dispatch_claimed>> done) override {
    answer_each<actors::dispatch_claimed>(
        done, asked, [&](const auto& each) { return actors::claim_in(rows_, each, time(), pace); });
  }

  void report(std::vector<protocol::dispatch_report> said, protocol::dispatch_pace pace,
              then<std::vector<actors::dispatch_reported>> done) override {
    answer_each<actors::dispatch_reported>(
        done, said, [&](const auto& each) { return actors::report_in(rows_, each, time(), pace); });
  }

  void operate(protocol::lease_key key, protocol::dispatch_operation what,
               then<actors::dispatch_reported> done) override {
    answer<actors::dispatch_reported>(done,
                                      [&] { return actors::operate_in(rows_, key, what, time()); });
  }

  void find(protocol::lease_key key, then<std::optional<protocol::dispatch_record>> done) override {
    using found_record = std::optional<protocol::dispatch_record>;
    answer<found_record>(done, [&]() -> actors::store_result<found_record> {
      const auto found = rows_.records.find(key);
      if (found == rows_.records.end()) return found_record{};
      return found_record{shown(found->second)};
    });
  }

  void events(protocol::lease_key key, std::int64_t after, std::size_t limit,
              then<std::vector<protocol::dispatch_event>> done) override {
    using found_events = std::vector<protocol::dispatch_event>;
    answer<found_events>(done, [&]() -> actors::store_result<found_events> {
      found_events found;
      for (auto at = rows_.events.upper_bound({key, after});
           at != rows_.events.end() && at->first.first == key &&
           found.size() < actors::bounded_page(limit);
           ++at) {
        found.push_back(at->second);
      }
      return found;
    });
  }

  void exited(protocol::instant since, std::size_t limit,
              then<std::vector<protocol::dispatch_record>> done) override {
    using found_records = std::vector<protocol::dispatch_record>;
    answer<found_records>(done, [&]() -> actors::store_result<found_records> {
      found_records found;
      for (const auto& [key, record] : rows_.records) {
        if (record.status != protocol::dispatch_status::closed &&
            record.last_result == protocol::dispatch_result::already_exited &&
            record.updated_at >= since) {
          found.push_back(shown(record));
        }
      }
      std::ranges::stable_sort(found, {}, &protocol::dispatch_record::updated_at);
      found.resize(std::min(found.size(), actors::bounded_page(limit)));
      return found;
    });
  }

  void count(then<actors::dispatch_counts> done) override {
    answer<actors::dispatch_counts>(done, [&]() -> actors::store_result<actors::dispatch_counts> {
      std::map<std::tuple<protocol::dispatch_stage, protocol::dispatch_status,
                          protocol::dispatch_result>,
               actors::dispatch_counts::cell>
          cells;
      for (const auto& [key, record] : rows_.records) {
        auto& cell = cells[{record.stage, record.status, record.last_result}];
        cell.oldest = cell.records == 0 ? record.created_at
                                        : protocol::earlier(cell.oldest, record.created_at);
        cell.stage = record.stage;
        cell.status = record.status;
        cell.last_result = record.last_result;
        cell.records += 1;
      }
      actors::dispatch_counts found;
      for (auto& [name, cell] : cells) found.cells.push_back(cell);
      return found;
    });
  }

 private:
  class rows final : public actors::dispatch_rows {
   public:
    using fault = std::optional<actors::store_error>;

    actors::store_result<std::optional<protocol::dispatch_record>> find(
        const protocol::lease_key& key) override {
      const auto found = records.find(key);
      if (found == records.end()) return std::optional<protocol::dispatch_record>{};
      return std::optional(found->second);
    }
    fault insert(const protocol::dispatch_record& made) override {
      records.emplace(made.key, made);
      return {};
    }
    actors::store_result<bool> update(const protocol::dispatch_record& after,
                                      std::int64_t before) override {
      const auto found = records.find(after.key);
      if (found == records.end() || found->second.version != before) return false;
      before_part_ = found->second;
      found->second = after;
      return true;
    }
    fault close_unread(const protocol::dispatch_change&) override { return {}; }
    fault append(const protocol::dispatch_event& event) override {
      if (refuses_events || !events.try_emplace({event.key, event.version}, event).second) {
        return actors::store_error{actors::store_error::kind::io, "the event is refused"};
      }
      return {};
    }
    actors::store_result<std::optional<protocol::process_handle>> find_handle(
        const protocol::lease_key& key, protocol::generation gen) override {
      const auto found = handles.find({key, gen});
      if (found == handles.end()) return std::optional<protocol::process_handle>{};
      return std::optional(found->second);
    }
    fault put_handle(const protocol::lease_key& key, protocol::generation gen,
                     const protocol::process_handle& handle) override {
      handles[{key, gen}] = handle;
      return {};
    }
    fault drop_handles(const protocol::lease_key& key, protocol::generation gen) override {
      std::erase_if(handles, [&](const auto& each) {
        return each.first.first == key && (gen.value == 0 || each.first.second == gen);
      });
      return {};
    }
    fault forget(const protocol::lease_key& key) override {
      records.erase(key);
      std::erase_if(events, [&](const auto& each) { return each.first.first == key; });
      return drop_handles(key, {});
    }
    fault begin_part() override {
      before_part_.reset();
      return {};
    }
    fault end_part(bool keep) override {
      if (!keep && before_part_) records[before_part_->key] = *before_part_;
      return {};
    }

    std::map<protocol::lease_key, protocol::dispatch_record> records;
    std::map<std::pair<protocol::lease_key, std::int64_t>, protocol::dispatch_event> events;
    std::map<std::pair<protocol::lease_key, protocol::generation>, protocol::process_handle>
        handles;
    bool refuses_events = false;

   private:
    std::optional<protocol::dispatch_record> before_part_;
  };

  [[nodiscard]] protocol::instant time() const { return clock_ ? clock_() : newest_; }

  /// Tokens are their claimants' alone.
  static protocol::dispatch_record shown(protocol::dispatch_record record) {
    record.lease_token.clear();
    return record;
  }

  template <class Said, class Ask>
  void answer(const then<Said>& done, const Ask& ask) {
    std::unique_lock lock(mutex_);
    actors::store_result<Said> said = actors::store_error{};
    if (failures_.empty()) {
      said = ask();
    } else {
      said = actors::store_error{failures_.front(), "the test ordered this call to fail"};
      failures_.pop_front();
    }
    if (std::exchange(loses_answer_, false)) {
      said = actors::store_error{actors::store_error::kind::io, "the answer was lost"};
    }
    lock.unlock();
    done(std::move(said));
  }

  template <class Answer, class Asked, class Step>
  void answer_each(const then<std::vector<Answer>>& done, const std::vector<Asked>& asked,
                   const Step& step) {
    answer<std::vector<Answer>>(done, [&]() -> actors::store_result<std::vector<Answer>> {
      if (asked.size() > actors::most_dispatches) return actors::too_many_dispatches();
      std::vector<Answer> answers;
      for (const auto& each : asked) answers.push_back(std::get<Answer>(step(each)));
      return answers;
    });
  }

  mutable std::mutex mutex_;
  rows rows_;
  std::function<protocol::instant()> clock_;
  protocol::instant newest_;
  std::deque<actors::store_error::kind> failures_;
  bool loses_answer_ = false;
};

}  // namespace leasehold::tests
