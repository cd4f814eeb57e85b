#include "src/store/store_copy.hpp"

#include <memory>
#include <utility>
#include <vector>

#include "src/store/copied_tables.hpp"

namespace leasehold::storage {
namespace {

using actors::store_error;
using fault = std::optional<store_error>;

constexpr std::size_t most_chunk_bytes = std::size_t{4} << 20;
constexpr std::size_t most_chunk_rows = 2'000;

/// Copies one store; its parts are called once, in order.
class copier {
 public:
  copier(table_source& from, table_target& to, const copy_options& how)
      : from_(from), to_(to), how_(how) {}

  fault copy_tables() {
    for (const copied_table& table : copied_tables()) {
      auto counted = from_.count(table);
      if (auto* failed = std::get_if<store_error>(&counted)) return *failed;
      counts_.push_back(std::get<std::int64_t>(counted));
      all_ += counts_.back();
    }
    for (const copied_table& table : copied_tables()) {
      if (auto failed = copy_table(table)) return failed;
    }
    return std::nullopt;
  }

  fault compare_counts(copy_report& report) {
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      const copied_table& table = copied_tables()[i];
      auto counted = to_.count(table);
      if (auto* failed = std::get_if<store_error>(&counted)) return *failed;
      const auto there = std::get<std::int64_t>(counted);
      if (there != counts_[i]) {
        return store_error{store_error::kind::corrupt,
                           to_.name() + ": the table " + std::string(table.name) + " has " +
                               std::to_string(there) + " rows, and " + from_.name() + " has " +
                               std::to_string(counts_[i]) + "; copy again"};
      }
      if (table.name == "record") report.records = there;
      if (table.name == "policy") report.policies = there;
      if (table.name == "cancel_dispatch") report.dispatches = there;
    }
    return std::nullopt;
  }

 private:
  fault copy_table(const copied_table& table) {
    std::vector<copied_row> chunk;
    std::size_t bytes = 0;
    const auto flush = [&]() -> fault {
      if (chunk.empty()) return std::nullopt;
      auto failed = to_.put(table, chunk);
      done_ += static_cast<std::int64_t>(chunk.size());
      chunk.clear();
      bytes = 0;
      if (how_.progress) how_.progress(done_, all_, table.name);
      return failed;
    };
    auto failed = from_.each_row(table, [&](copied_row&& row) -> fault {
      bytes += size_of(row);
      chunk.push_back(std::move(row));
      const bool is_full = bytes >= most_chunk_bytes || chunk.size() >= most_chunk_rows;
      return is_full ? flush() : std::nullopt;
    });
    return failed ? failed : flush();
  }

  table_source& from_;
  table_target& to_;
  const copy_options& how_;
  std::vector<std::int64_t> counts_;
  std::int64_t all_ = 0;
  std::int64_t done_ = 0;
};

fault prove(table_target& to, const actors::log_head& head, const copy_options& how,
            copy_report& report) {
  auto opened = to.read_back();
  if (auto* failed = std::get_if<store_error>(&opened)) return *failed;
  verify_options wanted;
  wanted.progress = how.checking;
  if (head.last_row.value > 0) wanted.head = head;
  auto verified = verify_source(*std::get<std::unique_ptr<store_source>>(opened), wanted);
  if (auto* failed = std::get_if<store_error>(&verified)) return *failed;
  const auto& said = std::get<verify_report>(verified);
  report.rows = said.rows;
  if (said.proven() && (said.batches == 0 || said.head == head)) return std::nullopt;
  const std::string first = said.problems.empty()
                                ? "it ends at row " + std::to_string(said.head.last_row.value)
                                : "row " + std::to_string(said.problems.front().row.value) + ": " +
                                      said.problems.front().sentence;
  return store_error{store_error::kind::corrupt,
                     to.name() + ": the copy does not prove what it says (" + first +
                         "); it is left marked. Is the store that was copied proven itself "
                         "(leasehold verify)?"};
}

}  // namespace

actors::store_result<copy_report> copy_store(const copy_options& how) {
  if (how.from == how.to) {
    return store_error{store_error::kind::foreign,
                       shown(how.to) + " is the store that is copied; name another place"};
  }
  auto opened_from = open_table_source(how.from);
  if (auto* failed = std::get_if<store_error>(&opened_from)) return *failed;
  auto opened_to = open_table_target(how.to);
  if (auto* failed = std::get_if<store_error>(&opened_to)) return *failed;
  auto& from = *std::get<std::unique_ptr<table_source>>(opened_from);
  auto& to = *std::get<std::unique_ptr<table_target>>(opened_to);
  if (auto failed = from.begin()) return *failed;
  if (auto failed = to.begin(from.facts().shards, how.restart)) return *failed;
  copier work(from, to, how);
  copy_report report;
  report.head = from.head();
  if (auto failed = work.copy_tables()) return *failed;
  auto was_served = from.end();
  if (auto* failed = std::get_if<store_error>(&was_served)) return *failed;
  report.is_backup = from.facts().is_backup || std::get<bool>(was_served);
  if (auto failed = to.put_facts(from.facts(), report.is_backup)) return *failed;
  if (auto failed = work.compare_counts(report)) return *failed;
  if (auto failed = prove(to, report.head, how, report)) return *failed;
  if (auto failed = to.finish(report.head)) return *failed;
  return report;
}

actors::store_result<std::unique_ptr<table_source>> open_table_source(const store_place& place) {
  if (const auto* database = std::get_if<postgres_place>(&place)) {
    return open_postgres_tables(*database);
  }
  return open_sqlite_tables(std::get<sqlite_place>(place).directory);
}

actors::store_result<std::unique_ptr<table_target>> open_table_target(const store_place& place) {
  if (const auto* database = std::get_if<postgres_place>(&place)) {
    return open_postgres_target(*database);
  }
  return make_sqlite_target(std::get<sqlite_place>(place).directory);
}

}  // namespace leasehold::storage
