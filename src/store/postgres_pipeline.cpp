#include <utility>

#include "src/store/postgres_connection.hpp"

namespace leasehold::storage {

namespace {

/// What libpq wants to see of values.
struct value_pointers {
  explicit value_pointers(const std::vector<std::optional<std::string>>& values) {
    for (const auto& each : values) {
      texts.push_back(each ? each->data() : nullptr);
      lengths.push_back(each ? static_cast<int>(each->size()) : 0);
      formats.push_back(1);
    }
  }
  [[nodiscard]] int count() const { return static_cast<int>(texts.size()); }

  std::vector<const char*> texts;
  std::vector<int> lengths;
  std::vector<int> formats;
};

}  // namespace

void postgres_pipeline::add(std::string_view sql, postgres_values with, on_rows then) {
  statements_.push_back({std::string(sql), std::move(with), std::move(then), true, {}});
}

void postgres_pipeline::add_once(std::string_view sql, postgres_values with, on_rows then) {
  statements_.push_back({std::string(sql), std::move(with), std::move(then), false, {}});
}

bool postgres_pipeline::send_prepare(waiting& what) {
  if (!what.is_prepared || on_.prepared_.contains(what.sql)) return true;
  what.prepares = "s" + std::to_string(++on_.names_given_);
  on_.prepared_.emplace(what.sql, what.prepares);
  return PQsendPrepare(on_.db_.get(), what.prepares.c_str(), what.sql.c_str(),
                       static_cast<int>(what.with.types_.size()), what.with.types_.data()) == 1;
}

bool postgres_pipeline::send(waiting& what) {
  if (!send_prepare(what)) return false;
  const value_pointers values(what.with.values_);
  PGconn* to = on_.db_.get();
  if (!what.is_prepared) {
    return PQsendQueryParams(to, what.sql.c_str(), values.count(), what.with.types_.data(),
                             values.texts.data(), values.lengths.data(), values.formats.data(),
                             1) == 1;
  }
  return PQsendQueryPrepared(to, on_.prepared_.find(what.sql)->second.c_str(), values.count(),
                             values.texts.data(), values.lengths.data(), values.formats.data(),
                             1) == 1;
}

std::optional<postgres_error> postgres_pipeline::finish() {
  if (on_.broken_) return on_.lost("the connection was lost before");
  if (statements_.empty()) return std::nullopt;
  bool sent = true;
  for (waiting& each : statements_) sent = sent && send(each);
  if (!sent || PQpipelineSync(on_.db_.get()) != 1) {
    return on_.lost(PQerrorMessage(on_.db_.get()));
  }
  if (auto fault = on_.flush()) return fault;
  auto fault = read_answers();
  if (!fault) return std::nullopt;
  // What was prepared in it may not have been; its name is not given again.
  for (const waiting& each : statements_) {
    if (!each.prepares.empty()) on_.prepared_.erase(each.sql);
  }
  return fault;
}

std::optional<postgres_error> postgres_pipeline::read_answers() {
  std::optional<postgres_error> first;
  for (const waiting& each : statements_) {
    if (!each.prepares.empty()) {
      auto fault = read_answer(each, true);
      if (fault && !first) first = std::move(fault);
      if (on_.broken_) return first;
    }
    auto fault = read_answer(each, false);
    if (fault && !first) first = std::move(fault);
    if (on_.broken_) return first;
    if (!first) ++answered_;
  }
  auto fault = read_sync();
  return first ? first : fault;
}

std::optional<postgres_error> postgres_pipeline::read_answer(const waiting& what, bool is_prepare) {
  std::optional<postgres_error> fault;
  while (true) {
    auto next = on_.next_result();
    if (auto* failed = std::get_if<postgres_error>(&next)) return fault ? fault : *failed;
    if (std::get<PGresult*>(next) == nullptr) {
      if (PQstatus(on_.db_.get()) != CONNECTION_OK && !fault) {
        return on_.lost("the server closed the connection");
      }
      return fault;
    }
    postgres_rows rows(std::get<PGresult*>(next));
    switch (PQresultStatus(rows.raw())) {
      case PGRES_COMMAND_OK:
      case PGRES_TUPLES_OK:
        if (!is_prepare && what.then) what.then(std::move(rows));
        break;
      case PGRES_PIPELINE_ABORTED:
        break;  // an error that was met before is the one that counts
      default:
        if (!fault) fault = on_.error_of(rows.raw());
        if (PQstatus(on_.db_.get()) != CONNECTION_OK) {
          on_.broken_ = true;
          fault->is_lost = true;
        }
        if (on_.broken_) return fault;
    }
  }
}

std::optional<postgres_error> postgres_pipeline::read_sync() {
  auto next = on_.next_result();
  if (auto* failed = std::get_if<postgres_error>(&next)) return *failed;
  const postgres_rows rows(std::get<PGresult*>(next));
  if (rows.raw() != nullptr && PQresultStatus(rows.raw()) == PGRES_PIPELINE_SYNC) {
    return std::nullopt;
  }
  // At the end of an implicit transaction the commit itself can fail.
  if (rows.raw() != nullptr && PQresultStatus(rows.raw()) == PGRES_FATAL_ERROR) {
    auto fault = on_.error_of(rows.raw());
    on_.broken_ = true;
    return fault;
  }
  return on_.lost("the server's answers are not those to what was asked");
}

}  // namespace leasehold::storage
