// Copying from and into a PostgreSQL store.
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "src/store/copied_tables.hpp"
#include "src/store/postgres_epoch.hpp"
#include "src/store/postgres_reader.hpp"
#include "src/store/postgres_schema.hpp"

namespace leasehold::storage {
namespace {

using actors::store_error;

constexpr std::string_view copier = "store-copy";
constexpr std::string_view rows_at_once = "256";

std::string column_names(const copied_table& of) {
  std::string names;
  for (const auto& column : of.columns) {
    names += (names.empty() ? "" : ", ") + std::string(column.name);
  }
  return names;
}

actors::store_result<std::int64_t> number_of(postgres_connection& from, const std::string& sql) {
  auto found = from.run(sql);
  if (auto* failed = std::get_if<postgres_error>(&found)) return *failed;
  const auto& rows = std::get<postgres_rows>(found);
  return rows.count() > 0 ? rows.integer(0, 0) : std::int64_t{0};
}

actors::store_result<std::int64_t> count_rows(postgres_connection& from, const copied_table& of) {
  return number_of(from, "SELECT count(*) FROM " + std::string(of.name));
}

/// A store of an older format has fewer tables.
actors::store_result<bool> has_table(postgres_connection& in, std::string_view name) {
  auto found = number_of(
      in, "SELECT (to_regclass('leasehold." + std::string(name) + "') IS NOT NULL)::int4::int8");
  if (auto* failed = std::get_if<store_error>(&found)) return *failed;
  return std::get<std::int64_t>(found) != 0;
}

actors::store_result<std::int64_t> count_present(postgres_connection& in, const copied_table& of) {
  auto there = has_table(in, of.name);
  if (auto* failed = std::get_if<store_error>(&there)) return *failed;
  return std::get<bool>(there) ? count_rows(in, of) : std::int64_t{0};
}

actors::store_result<postgres_connection> connect(const postgres_place& place) {
  postgres_limits limits;
  // Counting the rows of a large table takes its time.
  limits.statement = std::chrono::minutes{30};
  limits.answer = std::chrono::minutes{35};
  return postgres_connection::open({place.url, std::string(copier), limits});
}

class postgres_table_source final : public table_source {
 public:
  postgres_table_source(std::string name, postgres_connection db, postgres_epoch epoch)
      : name_(std::move(name)), db_(std::move(db)), epoch_(std::move(epoch)) {}

  std::string name() const override { return name_; }

  fault begin() override {
    auto state = epoch_.read();
    if (auto* failed = std::get_if<store_error>(&state)) return *failed;
    before_ = std::get<epoch_state>(state);
    // The session waits while the other database writes.
    if (auto failed = db_.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; "
                                  "SET LOCAL idle_in_transaction_session_timeout = 0")) {
      return *failed;
    }
    auto known = read_facts(db_);
    if (auto* failed = std::get_if<store_error>(&known)) return *failed;
    facts_ = std::get<store_facts>(known);
    auto end = read_head(db_, facts_);
    if (auto* failed = std::get_if<store_error>(&end)) return *failed;
    head_ = std::get<actors::log_head>(end);
    return std::nullopt;
  }
  const store_facts& facts() const override { return facts_; }
  const actors::log_head& head() const override { return head_; }

  actors::store_result<std::int64_t> count(const copied_table& of) override {
    return count_present(db_, of);
  }

  fault each_row(const copied_table& of, const std::function<fault(copied_row&&)>& out) override {
    auto present = has_table(db_, of.name);
    if (auto* failed = std::get_if<store_error>(&present)) return *failed;
    if (!std::get<bool>(present)) return std::nullopt;
    if (auto failed = db_.execute("DECLARE copied NO SCROLL CURSOR FOR SELECT " + column_names(of) +
                                  " FROM " + std::string(of.name) + " ORDER BY 1, 2")) {
      return *failed;
    }
    const std::string next = "FETCH " + std::string(rows_at_once) + " FROM copied";
    while (true) {
      auto found = db_.run(next);
      if (auto* failed = std::get_if<postgres_error>(&found)) return *failed;
      const auto& rows = std::get<postgres_rows>(found);
      if (rows.count() == 0) break;
      for (int i = 0; i < rows.count(); ++i) {
        if (auto failed = out(row_at(of, rows, i))) return failed;
      }
    }
    if (auto failed = db_.execute("CLOSE copied")) return *failed;
    return std::nullopt;
  }

  actors::store_result<bool> end() override {
    if (auto failed = db_.execute("COMMIT")) return *failed;
    auto state = epoch_.read();
    if (auto* failed = std::get_if<store_error>(&state)) return *failed;
    return !before_.released || std::get<epoch_state>(state) != before_;
  }

 private:
  static copied_row row_at(const copied_table& of, const postgres_rows& rows, int at) {
    copied_row row;
    row.reserve(of.columns.size());
    for (std::size_t i = 0; i < of.columns.size(); ++i) {
      const int column = static_cast<int>(i);
      if (of.columns[i].kind == cell_kind::integer) {
        row.emplace_back(rows.integer(at, column));
      } else {
        row.emplace_back(std::string(rows.bytes(at, column)));
      }
    }
    return row;
  }

  std::string name_;
  postgres_connection db_;
  postgres_epoch epoch_;
  epoch_state before_;
  store_facts facts_;
  actors::log_head head_;
};

/// The values of one column, in the order of the rows.
void add_column(postgres_values& to, std::span<const copied_row> rows, std::size_t column,
                cell_kind kind) {
  if (kind == cell_kind::integer) {
    std::vector<std::int64_t> numbers;
    numbers.reserve(rows.size());
    for (const auto& row : rows) numbers.push_back(std::get<std::int64_t>(row[column]));
    to.integers(numbers);
    return;
  }
  std::vector<std::string_view> texts;
  texts.reserve(rows.size());
  for (const auto& row : rows) texts.push_back(std::get<std::string>(row[column]));
  if (kind == cell_kind::text) {
    to.texts(texts);
  } else {
    to.byte_texts(texts);
  }
}

class postgres_target final : public table_target {
 public:
  postgres_target(postgres_place place, postgres_connection db)
      : place_(std::move(place)), db_(std::move(db)) {}

  std::string name() const override { return shown_postgres(place_.url); }

  fault begin(std::int64_t shards, bool restart) override {
    if (auto failed = clear_place(shards, restart)) return failed;
    auto opened = postgres_epoch::open({place_.url, std::string(copier), {}}, shards);
    if (auto* failed = std::get_if<store_error>(&opened)) return *failed;
    epoch_.emplace(std::move(std::get<postgres_epoch>(opened)));
    if (auto failed = take_epoch()) return failed;
    return mark(unfinished_version);
  }

  fault put(const copied_table& into, std::span<const copied_row> rows) override {
    // The epoch that a batch was written in is known in PostgreSQL alone; 0 is before every other.
    const bool is_log = into.name == "batch";
    std::string values;
    postgres_values with;
    for (std::size_t i = 0; i < into.columns.size(); ++i) {
      const auto kind = into.columns[i].kind;
      const char* type = kind == cell_kind::integer ? "bigint"
                         : kind == cell_kind::text  ? "text"
                                                    : "bytea";
      values += (i == 0 ? "$" : ", $") + std::to_string(i + 1) + "::" + type + "[]";
      add_column(with, rows, i, kind);
    }
    const std::string sql = "INSERT INTO " + std::string(into.name) + " (" + column_names(into) +
                            (is_log ? ", epoch) SELECT *, 0" : ") SELECT *") + " FROM unnest(" +
                            values + ")";
    return write([&](postgres_pipeline& whole) { whole.add(sql, std::move(with)); });
  }

  fault put_facts(const store_facts& facts, bool is_backup) override {
    return write([&](postgres_pipeline& whole) {
      whole.add("UPDATE store SET store_id = $1, shards = $2",
                postgres_values().text(facts.store_id).integer(facts.shards));
      write_anchor_facts(whole, facts);
      write_checkpoint_facts(whole, facts);
      write_backup_mark(whole, is_backup);
    });
  }

  actors::store_result<std::int64_t> count(const copied_table& of) override {
    return count_present(db_, of);
  }

  actors::store_result<std::unique_ptr<store_source>> read_back() override {
    auto opened = connect(place_);
    if (auto* failed = std::get_if<store_error>(&opened)) return *failed;
    auto reader =
        std::make_unique<postgres_reader>(std::move(std::get<postgres_connection>(opened)));
    return make_source(name(), std::move(reader), std::nullopt);
  }

  fault finish(const actors::log_head&) override {
    if (auto failed = write([](postgres_pipeline& whole) {
          whole.add("UPDATE store SET format = $1", postgres_values().integer(postgres_format));
        })) {
      return failed;
    }
    auto released = epoch_->release(taken_.epoch);
    if (auto* failed = std::get_if<store_error>(&released)) return *failed;
    return std::nullopt;
  }

 private:
  /// One transaction, which another copier that took the target over makes fail.
  fault write(const std::function<void(postgres_pipeline&)>& what) {
    postgres_pipeline whole(db_);
    whole.add("BEGIN");
    check_epoch(whole, taken_.epoch);
    what(whole);
    whole.add("COMMIT");
    const auto failed = whole.finish();
    if (!failed) return std::nullopt;
    if (failed->state != moved_epoch) return *failed;
    return store_error{store_error::kind::taken,
                       name() + " was taken by another copy or coordinator meanwhile"};
  }

  fault mark(std::int64_t format) {
    auto done =
        db_.run("UPDATE leasehold.store SET format = $1", postgres_values().integer(format));
    if (auto* failed = std::get_if<postgres_error>(&done)) return *failed;
    return std::nullopt;
  }

  /// A store that is there may have no row, or be a copy that is made anew.
  fault clear_place(std::int64_t shards, bool restart) {
    auto there = has_table(db_, "store");
    if (auto* failed = std::get_if<store_error>(&there)) return *failed;
    if (!std::get<bool>(there)) return prepare_schema(db_, shards);
    auto format = number_of(db_, "SELECT format FROM leasehold.store");
    if (auto* failed = std::get_if<store_error>(&format)) return *failed;
    if (std::get<std::int64_t>(format) == unfinished_version) {
      if (!restart) return refuse(unfinished_copy);
      std::vector<std::string_view> names{"floor", "mark", "dispatch_clock"};
      for (const copied_table& table : copied_tables()) names.push_back(table.name);
      for (const std::string_view each : names) {
        auto present = has_table(db_, each);
        if (auto* failed = std::get_if<store_error>(&present)) return *failed;
        if (!std::get<bool>(present)) continue;
        if (auto failed = db_.execute("TRUNCATE leasehold." + std::string(each))) return *failed;
      }
      return mark(postgres_format);
    }
    if (auto failed = prepare_schema(db_, std::nullopt)) return failed;
    for (const copied_table& table : copied_tables()) {
      auto rows = count_present(db_, table);
      if (auto* failed = std::get_if<store_error>(&rows)) return *failed;
      if (std::get<std::int64_t>(rows) == 0) continue;
      return refuse("holds a store that is not empty; name another database");
    }
    return std::nullopt;
  }

  /// Who serves the empty store would write beside the copy. A copier that was killed is nobody.
  fault take_epoch() {
    auto state = epoch_->read();
    if (auto* failed = std::get_if<store_error>(&state)) return *failed;
    const auto& seen = std::get<epoch_state>(state);
    if (!seen.released && !seen.owner.starts_with(copier)) {
      return store_error{store_error::kind::taken,
                         name() + " is served by a coordinator" +
                             (seen.address.empty() ? "" : " at " + seen.address) +
                             ", or was when that was killed; stop it in order"};
    }
    auto taken = epoch_->take(seen, std::string(copier) + "-" + std::to_string(::getpid()), "");
    if (auto* failed = std::get_if<store_error>(&taken)) return *failed;
    const auto& ours = std::get<std::optional<epoch_state>>(taken);
    if (!ours) {
      return store_error{store_error::kind::taken, name() +
                                                       " is being taken by somebody else; "
                                                       "name another database"};
    }
    taken_ = *ours;
    return std::nullopt;
  }

  [[nodiscard]] store_error refuse(std::string_view why) const {
    return {store_error::kind::foreign, name() + " " + std::string(why)};
  }

  postgres_place place_;
  postgres_connection db_;
  std::optional<postgres_epoch> epoch_;
  epoch_state taken_;
};

}  // namespace

actors::store_result<std::unique_ptr<table_source>> open_postgres_tables(
    const postgres_place& place) {
  auto opened = connect(place);
  if (auto* failed = std::get_if<store_error>(&opened)) return *failed;
  auto& db = std::get<postgres_connection>(opened);
  if (auto failed = prepare_schema(db, std::nullopt)) return *failed;
  auto epoch = postgres_epoch::open({place.url, std::string(copier), {}});
  if (auto* failed = std::get_if<store_error>(&epoch)) return *failed;
  return std::make_unique<postgres_table_source>(shown_postgres(place.url), std::move(db),
                                                 std::move(std::get<postgres_epoch>(epoch)));
}

actors::store_result<std::unique_ptr<table_target>> open_postgres_target(
    const postgres_place& place) {
  auto opened = connect(place);
  if (auto* failed = std::get_if<store_error>(&opened)) return *failed;
  return std::make_unique<postgres_target>(place, std::move(std::get<postgres_connection>(opened)));
}

}  // namespace leasehold::storage
