#include "support/stored_log.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string_view>

#include "leasehold/actors/job.hpp"
#include "leasehold/protocol/record_image.hpp"

namespace leasehold::tests {

using protocol::event_kind;
using protocol::stored_row;

namespace {

/// From this number on reasons say that a frame was not judged: it leaves no row.
constexpr auto first_unjudged = static_cast<std::uint16_t>(protocol::reason::holder_not_yours);

bool was_judged(protocol::reason why) { return static_cast<std::uint16_t>(why) < first_unjudged; }

bool is_grant(const stored_row& r) {
  return (r.input.kind == event_kind::offer || r.input.kind == event_kind::acquire) &&
         r.answer.decision == protocol::decision::applied;
}

std::string decision_text(protocol::decision what, protocol::reason why) {
  return std::string(word(what)) + "(" + std::string(word(why)) + ")";
}

using open_database = std::unique_ptr<sqlite3, decltype(&sqlite3_close)>;

/// Runs a query; yields what went wrong, or nothing.
std::string each_row(sqlite3* db, std::string_view sql,
                     const std::function<void(sqlite3_stmt*)>& take) {
  sqlite3_stmt* made = nullptr;
  if (sqlite3_prepare_v2(db, sql.data(), static_cast<int>(sql.size()), &made, nullptr) !=
      SQLITE_OK) {
    return sqlite3_errmsg(db);
  }
  const std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)> query(made, &sqlite3_finalize);
  int code = sqlite3_step(made);
  for (; code == SQLITE_ROW; code = sqlite3_step(made)) take(made);
  return code == SQLITE_DONE ? std::string() : sqlite3_errmsg(db);
}

void take_batch(sqlite3_stmt* from, stored_log& into) {
  add_batch(into, sqlite3_column_int64(from, 0), sqlite3_column_int64(from, 1),
            {static_cast<const char*>(sqlite3_column_blob(from, 2)),
             static_cast<std::size_t>(sqlite3_column_bytes(from, 2))});
}

}  // namespace

void add_batch(stored_log& into, std::int64_t first, std::int64_t last, std::string_view body) {
  auto read = protocol::decode_rows(body, {first});
  const auto expected = into.cut + static_cast<std::int64_t>(into.rows.size()) + 1;
  if (first != expected || read.broken ||
      static_cast<std::int64_t>(read.rows.size()) != last - first + 1) {
    into.faults.push_back("the batch of rows " + std::to_string(first) + " to " +
                          std::to_string(last) + " is not whole or not the next one");
  }
  std::ranges::move(read.rows, std::back_inserter(into.rows));
}

stored_log read_log(const std::filesystem::path& directory) {
  stored_log out;
  sqlite3* opened = nullptr;
  const auto file = directory / "leasehold.db";
  const int code = sqlite3_open_v2(file.c_str(), &opened, SQLITE_OPEN_READWRITE, nullptr);
  const open_database db(opened, &sqlite3_close);
  if (code != SQLITE_OK) {
    out.faults.emplace_back("the database does not open");
    return out;
  }
  sqlite3_busy_timeout(db.get(), 5000);
  const auto add = [&](const std::string& fault) {
    if (!fault.empty()) out.faults.push_back(fault);
  };
  // One view of all: the log may be cut meanwhile.
  add(each_row(db.get(), "BEGIN", [](sqlite3_stmt*) {}));
  add(each_row(db.get(), "SELECT value FROM meta WHERE key = 'anchor_row'",
               [&](sqlite3_stmt* row) { out.cut = sqlite3_column_int64(row, 0); }));
  add(each_row(db.get(), "SELECT first_row, last_row, body FROM batch ORDER BY first_row",
               [&](sqlite3_stmt* row) { take_batch(row, out); }));
  add(each_row(db.get(), "SELECT shard, generation FROM floor", [&](sqlite3_stmt* row) {
    out.floors[static_cast<std::size_t>(sqlite3_column_int64(row, 0))] =
        sqlite3_column_int64(row, 1);
  }));
  add(each_row(db.get(), "SELECT id FROM policy", [&](sqlite3_stmt* row) {
    out.policies.insert(static_cast<std::uint64_t>(sqlite3_column_int64(row, 0)));
  }));
  return out;
}

loss_search::loss_search(const stored_log& log, const driver_log& seen) : log_(log), seen_(seen) {}

std::vector<std::string> loss_search::run() {
  faults_ = log_.faults;
  index();
  for (const auto& each : seen_.verdicts()) look_for(each);
  for (const auto& each : seen_.standings()) look_for(each);
  for (const auto& each : seen_.answers()) look_for(each);
  for (const auto& each : seen_.messages()) look_whether_whole(each);
  for (const auto& [job, payload] : seen_.submits()) look_whether_whole(job, payload);
  compare_generations();
  return faults_;
}

void loss_search::index() {
  for (const auto& row : log_.rows) {
    const auto& lease = row.key.lease.value;
    if (lease.empty()) continue;
    tenant_ = row.key.tenant;
    leases_[lease].push_back(&row);
    note_generation(row);
    if (row.has_input && row.input.frame_id != 0) {
      frames_.emplace(frame_key{row.input.session_epoch, row.input.frame_id}, &row);
    }
    if (row.policy.value != 0 && !log_.policies.contains(row.policy.value)) {
      report("row " + std::to_string(row.row.value) + " names a policy that is not stored");
    }
  }
}

void loss_search::note_generation(const stored_row& row) {
  auto& of_lease = generations_[row.key.lease.value];
  if (row.input.kind == event_kind::base) {
    const auto base = protocol::decode_base(row.attachment);
    if (base) of_lease.push_back({row.row.value, base->image.state.gen.value});
  } else if (row.input.kind == event_kind::submit && row.prev_row.value == 0) {
    of_lease.push_back({row.row.value, 0});
  } else if (is_grant(row) && !of_lease.empty()) {
    of_lease.push_back({row.row.value, std::max(of_lease.back().gen, row.floor.value) + 1});
  }
}

void loss_search::look_for(const kept_verdict& said) {
  const auto [begin, end] = frames_.equal_range({said.epoch, said.frame_id});
  const auto what = "frame " + std::to_string(said.frame_id) + " of session " +
                    std::to_string(said.epoch) + " about " + said.lease + ", answered " +
                    decision_text(said.decision, said.reason) + " at row " +
                    std::to_string(said.row);
  if (!was_judged(said.reason)) {
    if (begin != end) report(what + ", was judged all the same");
    return;
  }
  const bool found = std::any_of(begin, end, [&](const auto& entry) {
    const stored_row& row = *entry.second;
    return row.key.lease.value == said.lease && row.answer.decision == said.decision &&
           row.answer.reason == said.reason && (said.row == 0 || row.row.value <= said.row);
  });
  if (!found && !was_cut(said.row)) report(what + ", has no such row");
  if (said.row != 0) look_for(kept_standing{said.lease, said.gen, said.row, {}});
}

void loss_search::look_for(const kept_standing& said) {
  const auto* row = row_of(said.lease, said.row);
  const auto what = "row " + std::to_string(said.row) + " of " + said.lease +
                    ", told with generation " + std::to_string(said.gen);
  if (was_cut(said.row)) {
    if (!is_covered(said.lease, said.gen)) report(what + ", was cut and is not covered");
    return;
  }
  if (row == nullptr) return report(what + ", is not in the log");
  // A lease that was lost is told with the generation that ended, not with the newest.
  const auto granted = generation_at(said.lease, said.row);
  if (!granted) return;
  if (*granted < said.gen) {
    return report(what + ", had only generation " + std::to_string(*granted) + " by then");
  }
  if (said.offered_to.empty()) return;
  if (!is_grant(*row) || row->input.from.value != said.offered_to || *granted != said.gen) {
    report(what + " to " + said.offered_to + ", is no such offer");
  }
}

void loss_search::look_for(const kept_answer& said) {
  if (!was_judged(said.reason)) return;
  if (was_cut(said.row)) return look_for(kept_standing{said.lease, 0, said.row, {}});
  const auto found = leases_.find(said.lease);
  const bool there =
      found != leases_.end() && std::ranges::any_of(found->second, [&](const stored_row* row) {
        return row->input.kind == said.kind && row->row.value <= said.row &&
               row->answer.decision == said.decision && row->answer.reason == said.reason;
      });
  if (there && row_of(said.lease, said.row) != nullptr) return;
  report(std::string(word(said.kind)) + " of " + said.lease + ", answered " +
         decision_text(said.decision, said.reason) + " at row " + std::to_string(said.row) +
         ", has no such row");
}

void loss_search::look_whether_whole(const kept_message& said) {
  struct part {
    int there = 0;
    int missing = 0;
  };
  std::map<std::string, part> parts;
  for (const auto& [frame, lease] : said.frames) {
    auto& of_lease = parts[lease];
    ++(frames_.contains({said.epoch, frame}) ? of_lease.there : of_lease.missing);
  }
  for (const auto& [lease, of_lease] : parts) {
    if (of_lease.there == 0 || of_lease.missing == 0) continue;
    report("of the frames of one message about " + lease + " in session " +
           std::to_string(said.epoch) + " " + std::to_string(of_lease.there) +
           " are in the log and " + std::to_string(of_lease.missing) + " are not");
  }
}

void loss_search::look_whether_whole(const std::string& job, const std::string& payload) {
  const auto found = leases_.find(job);
  if (found == leases_.end()) return;
  // The row that holds what was submitted. Frames may have come before it, when the name is that of
  // a job that was forgotten.
  const auto& rows = found->second;
  const auto begins = [](const stored_row* row) {
    return row->input.kind == event_kind::submit && row->prev_row.value == 0;
  };
  const auto submitted = std::ranges::find_if(rows, begins);
  const stored_row* whole = submitted == rows.end() ? nullptr : *submitted;
  if (log_.cut == 0 && submitted != rows.begin()) whole = nullptr;
  auto spec = whole != nullptr ? actors::decode_job(whole->attachment) : std::nullopt;
  if (whole == nullptr && log_.cut > 0) {
    whole = row_of_kind(job, event_kind::base);
    const bool unknown = std::ranges::all_of(rows, [](const stored_row* row) {
      return row->state_before == protocol::lease_state::none && row->prev_row.value == 0;
    });
    // Forgotten before it needed a base row.
    if (whole == nullptr && (unknown || row_of_kind(job, event_kind::forget) != nullptr)) return;
    const auto base = whole != nullptr ? protocol::decode_base(whole->attachment) : std::nullopt;
    if (base) spec = actors::decode_job(base->image.body);
  }
  if (spec && spec->payload == payload && whole->policy.value != 0) return;
  const auto where = [&](event_kind kind) {
    const auto* row = row_of_kind(job, kind);
    return ", " + std::string(word(kind)) + " " +
           (row == nullptr ? "nowhere" : "in row " + std::to_string(row->row.value));
  };
  report("job " + job + " is in the log from row " +
         std::to_string(found->second.front()->row.value) + " to " +
         std::to_string(found->second.back()->row.value) +
         ", but its submit is not, or not as it was sent" + where(event_kind::base) +
         where(event_kind::forget) + "; the log was cut up to row " + std::to_string(log_.cut));
}

void loss_search::compare_generations() {
  std::map<std::string, std::map<std::int64_t, const kept_standing*>> offers;
  for (const auto& each : seen_.standings()) {
    if (each.offered_to.empty()) continue;
    const auto [at, fresh] = offers[each.lease].try_emplace(each.gen, &each);
    if (fresh || (at->second->row == each.row && at->second->offered_to == each.offered_to)) {
      continue;
    }
    report("generation " + std::to_string(each.gen) + " of " + each.lease + " was given to " +
           at->second->offered_to + " and to " + each.offered_to);
  }
  for (const auto& [lease, by_gen] : offers) {
    std::int64_t row = 0;
    for (const auto& [gen, offer] : by_gen) {
      if (offer->row <= row) {
        report("generation " + std::to_string(gen) + " of " + lease + " goes back in the log");
      }
      row = offer->row;
    }
  }
}

const stored_row* loss_search::row_of(const std::string& lease, std::int64_t row) const {
  row -= log_.cut;
  if (row < 1 || row > static_cast<std::int64_t>(log_.rows.size())) return nullptr;
  const auto& found = log_.rows[static_cast<std::size_t>(row - 1)];
  return found.key.lease.value == lease ? &found : nullptr;
}

std::optional<std::int64_t> loss_search::generation_at(const std::string& lease,
                                                       std::int64_t row) const {
  const auto found = generations_.find(lease);
  if (found == generations_.end()) return std::nullopt;
  const auto& of_lease = found->second;
  const auto later = std::ranges::upper_bound(of_lease, row, {}, &generation_from::row);
  if (later != of_lease.begin()) return std::prev(later)->gen;
  // Before a base row stand rows of a life whose beginning was cut.
  return log_.cut > 0 ? std::nullopt : std::optional<std::int64_t>{0};
}

bool loss_search::is_covered(const std::string& lease, std::int64_t gen) const {
  if (row_of_kind(lease, event_kind::forget) != nullptr) return true;
  if (const auto* base = row_of_kind(lease, event_kind::base)) {
    const auto kept = protocol::decode_base(base->attachment);
    if (kept && kept->image.state.gen.value >= gen) return true;
  }
  const auto floor = log_.floors.find(protocol::shard_of({tenant_, protocol::lease_id{lease}}));
  return gen == 0 || (floor != log_.floors.end() && floor->second >= gen);
}

const stored_row* loss_search::row_of_kind(const std::string& lease, event_kind kind) const {
  const auto found = leases_.find(lease);
  if (found == leases_.end()) return nullptr;
  const auto row = std::ranges::find_if(
      found->second, [kind](const stored_row* each) { return each->input.kind == kind; });
  return row == found->second.end() ? nullptr : *row;
}

void loss_search::report(std::string sentence) { faults_.push_back(std::move(sentence)); }

}  // namespace leasehold::tests
