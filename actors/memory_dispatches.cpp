#include "leasehold/actors/memory_dispatches.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "leasehold/actors/dispatch_rows.hpp"

namespace leasehold::actors {

namespace {

using protocol::dispatch_event;
using protocol::dispatch_record;
using protocol::lease_key;

class memory_rows final : public dispatch_rows {
 public:
  using fault = std::optional<store_error>;

  store_result<std::optional<dispatch_record>> find(const lease_key& key) override {
    const auto found = records.find(key);
    if (found == records.end()) return std::optional<dispatch_record>{};
    return std::optional(found->second);
  }
  fault insert(const dispatch_record& made) override {
    records.emplace(made.key, made);
    return {};
  }
  store_result<bool> update(const dispatch_record& after, std::int64_t before) override {
    const auto found = records.find(after.key);
    if (found == records.end() || found->second.version != before) return false;
    before_part_ = found->second;
    found->second = after;
    return true;
  }
  fault close_unread(const protocol::dispatch_change&) override { return {}; }
  fault append(const dispatch_event& event) override {
    if (events.try_emplace({event.key, event.version}, event).second) return {};
    return store_error{store_error::kind::io, "there is an event of this version"};
  }
  store_result<std::optional<protocol::process_handle>> find_handle(
      const lease_key& key, protocol::generation gen) override {
    const auto found = handles.find({key, gen});
    if (found == handles.end()) return std::optional<protocol::process_handle>{};
    return std::optional(found->second);
  }
  fault put_handle(const lease_key& key, protocol::generation gen,
                   const protocol::process_handle& handle) override {
    handles[{key, gen}] = handle;
    return {};
  }
  fault drop_handles(const lease_key& key, protocol::generation gen) override {
    std::erase_if(handles, [&](const auto& each) {
      return each.first.first == key && (gen.value == 0 || each.first.second == gen);
    });
    return {};
  }
  fault forget(const lease_key& key) override {
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

  std::map<lease_key, dispatch_record> records;
  std::map<std::pair<lease_key, std::int64_t>, dispatch_event> events;
  std::map<std::pair<lease_key, protocol::generation>, protocol::process_handle> handles;

 private:
  std::optional<dispatch_record> before_part_;
};

/// Tokens are their claimants' alone.
dispatch_record shown(dispatch_record record) {
  record.lease_token.clear();
  return record;
}

}  // namespace

struct memory_dispatches::parts {
  [[nodiscard]] protocol::instant time() const { return clock ? clock() : newest; }

  mutable std::mutex mutex;
  memory_rows rows;
  std::function<protocol::instant()> clock;
  protocol::instant newest;
};

memory_dispatches::memory_dispatches() : parts_(std::make_unique<parts>()) {}
memory_dispatches::~memory_dispatches() = default;

void memory_dispatches::set_clock(std::function<protocol::instant()> now) {
  const std::lock_guard lock(parts_->mutex);
  parts_->clock = std::move(now);
}

void memory_dispatches::apply(const std::vector<protocol::dispatch_change>& changes) {
  const std::lock_guard lock(parts_->mutex);
  for (const auto& each : changes) {
    parts_->newest = std::max(parts_->newest, each.at);
    apply_change(parts_->rows, each);
  }
}

std::optional<dispatch_record> memory_dispatches::stored(const lease_key& key) const {
  const std::lock_guard lock(parts_->mutex);
  const auto found = parts_->rows.records.find(key);
  return found == parts_->rows.records.end() ? std::nullopt : std::optional(found->second);
}

std::vector<dispatch_event> memory_dispatches::events_of(const lease_key& key) const {
  const std::lock_guard lock(parts_->mutex);
  std::vector<dispatch_event> found;
  for (const auto& [at, event] : parts_->rows.events) {
    if (at.first == key) found.push_back(event);
  }
  return found;
}

std::optional<protocol::process_handle> memory_dispatches::handle_of(
    const lease_key& key, protocol::generation gen) const {
  const std::lock_guard lock(parts_->mutex);
  const auto found = parts_->rows.handles.find({key, gen});
  return found == parts_->rows.handles.end() ? std::nullopt : std::optional(found->second);
}

void memory_dispatches::put_row(const dispatch_event& event) {
  const std::lock_guard lock(parts_->mutex);
  parts_->rows.events[{event.key, event.version}] = event;
}

void memory_dispatches::remove_row(const dispatch_event& event) {
  const std::lock_guard lock(parts_->mutex);
  parts_->rows.events.erase({event.key, event.version});
}

template <class Said, class Ask>
void memory_dispatches::answer(const then<Said>& done, const Ask& ask) {
  std::unique_lock lock(parts_->mutex);
  store_result<Said> said = store_error{};
  if (auto refused = refuse_call()) {
    said = std::move(*refused);
  } else {
    said = ask();
    if (auto lost = lose_answer()) said = std::move(*lost);
  }
  lock.unlock();
  done(std::move(said));
}

template <class Answer, class Asked, class Step>
void memory_dispatches::answer_each(const then<std::vector<Answer>>& done,
                                    const std::vector<Asked>& asked, const Step& step) {
  answer<std::vector<Answer>>(done, [&]() -> store_result<std::vector<Answer>> {
    if (asked.size() > most_dispatches) return too_many_dispatches();
    std::vector<Answer> answers;
    for (const auto& each : asked) answers.push_back(std::get<Answer>(step(each)));
    return answers;
  });
}

store_result<protocol::instant> memory_dispatches::now() {
  const std::lock_guard lock(parts_->mutex);
  return parts_->time();
}

void memory_dispatches::page(dispatch_query what, then<dispatch_page> done) {
  answer<dispatch_page>(done, [&]() -> store_result<dispatch_page> {
    const auto after = key_of(what.from);
    if (!after) return unknown_cursor();
    const auto limit = bounded_page(what.limit);
    dispatch_page found;
    for (auto at = parts_->rows.records.upper_bound(*after); at != parts_->rows.records.end();
         ++at) {
      if (!fits(what, at->second, parts_->time())) continue;
      if (found.records.size() == limit) {
        found.next = cursor_after(found.records.back().key);
        break;
      }
      found.records.push_back(shown(at->second));
    }
    return found;
  });
}

void memory_dispatches::claim(std::vector<protocol::dispatch_claim> asked,
                              protocol::dispatch_pace pace,
                              then<std::vector<dispatch_claimed>> done) {
  answer_each<dispatch_claimed>(done, asked, [&](const auto& each) {
    return claim_in(parts_->rows, each, parts_->time(), pace);
  });
}

void memory_dispatches::report(std::vector<protocol::dispatch_report> said,
                               protocol::dispatch_pace pace,
                               then<std::vector<dispatch_reported>> done) {
  answer_each<dispatch_reported>(done, said, [&](const auto& each) {
    return report_in(parts_->rows, each, parts_->time(), pace);
  });
}

void memory_dispatches::operate(lease_key key, protocol::dispatch_operation what,
                                then<dispatch_reported> done) {
  answer<dispatch_reported>(done,
                            [&] { return operate_in(parts_->rows, key, what, parts_->time()); });
}

void memory_dispatches::find(lease_key key, then<std::optional<dispatch_record>> done) {
  answer<std::optional<dispatch_record>>(done,
                                         [&]() -> store_result<std::optional<dispatch_record>> {
                                           const auto found = parts_->rows.records.find(key);
                                           if (found == parts_->rows.records.end())
                                             return std::optional<dispatch_record>{};
                                           return std::optional(shown(found->second));
                                         });
}

void memory_dispatches::events(lease_key key, std::int64_t after, std::size_t limit,
                               then<std::vector<dispatch_event>> done) {
  answer<std::vector<dispatch_event>>(done, [&]() -> store_result<std::vector<dispatch_event>> {
    const auto& all = parts_->rows.events;
    std::vector<dispatch_event> found;
    for (auto at = all.upper_bound({key, after});
         at != all.end() && at->first.first == key && found.size() < bounded_page(limit); ++at) {
      found.push_back(at->second);
    }
    return found;
  });
}

void memory_dispatches::exited(protocol::instant since, std::size_t limit,
                               then<std::vector<dispatch_record>> done) {
  answer<std::vector<dispatch_record>>(done, [&]() -> store_result<std::vector<dispatch_record>> {
    std::vector<dispatch_record> found;
    for (const auto& [key, record] : parts_->rows.records) {
      if (record.status != protocol::dispatch_status::closed &&
          record.last_result == protocol::dispatch_result::already_exited &&
          record.updated_at >= since) {
        found.push_back(shown(record));
      }
    }
    std::ranges::stable_sort(found, {}, &dispatch_record::updated_at);
    found.resize(std::min(found.size(), bounded_page(limit)));
    return found;
  });
}

void memory_dispatches::count(then<dispatch_counts> done) {
  answer<dispatch_counts>(done, [&]() -> store_result<dispatch_counts> {
    std::map<
        std::tuple<protocol::dispatch_stage, protocol::dispatch_status, protocol::dispatch_result>,
        dispatch_counts::cell>
        cells;
    for (const auto& [key, r] : parts_->rows.records) {
      auto& cell =
          cells
              .try_emplace({r.stage, r.status, r.last_result},
                           dispatch_counts::cell{r.stage, r.status, r.last_result, 0, r.created_at})
              .first->second;
      cell.records += 1;
      cell.oldest = protocol::earlier(cell.oldest, r.created_at);
    }
    dispatch_counts found;
    for (const auto& [name, cell] : cells) found.cells.push_back(cell);
    return found;
  });
}

}  // namespace leasehold::actors
