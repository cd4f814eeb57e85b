// A pooler between us and the server: one that gives each transaction another session cannot be
// used, because settings and prepared statements stay in the one before.
#include <array>

#include "src/store/postgres_connection.hpp"

namespace leasehold::storage {

namespace {

using actors::store_error;

/// Sessions that keep others busy while ours is looked at again.
constexpr int most_others = 3;

store_error refused(const std::string& place, std::string_view why) {
  return {store_error::kind::foreign,
          place + ": a pooler stands before the server and " + std::string(why) +
              "; name the server itself, or a pool in session mode with at least two connections"};
}

postgres_result<std::int64_t> backend_of(postgres_connection& of) {
  std::int64_t pid = 0;
  postgres_pipeline one(of);
  one.add_once("SELECT pg_catalog.pg_backend_pid()", {},
               [&pid](const postgres_rows& rows) { pid = rows.integer(0, 0); });
  if (auto fault = one.finish()) return *fault;
  return pid;
}

}  // namespace

std::optional<store_error> postgres_connection::refuse_pooler(const postgres_access& how) {
  const auto first = backend_of(*this);
  if (const auto* fault = std::get_if<postgres_error>(&first)) return *fault;
  const auto ours = std::get<std::int64_t>(first);
  if (ours == backend_pid()) return std::nullopt;
  // Others hold a transaction each, so that a pool by transactions cannot give us the same session
  // for long, and one of size one none at all.
  std::array<std::optional<postgres_connection>, most_others> others;
  for (auto& other : others) {
    auto made = connected(how);
    if (std::holds_alternative<store_error>(made)) {
      return refused(place_, "has no second connection for us");
    }
    other = std::move(std::get<postgres_connection>(made));
    other->answer_wait_ = pooler_wait;
    if (other->execute("BEGIN")) return refused(place_, "does not keep transactions together");
    const auto theirs = backend_of(*other);
    if (std::holds_alternative<postgres_error>(theirs)) {
      return refused(place_, "has no second connection for us");
    }
    const auto again = backend_of(*this);
    if (std::holds_alternative<postgres_error>(again)) {
      return refused(place_, "has no second connection for us");
    }
    if (std::get<std::int64_t>(theirs) == ours || std::get<std::int64_t>(again) != ours) {
      return refused(place_, "gives each transaction another session");
    }
  }
  return std::nullopt;
}

}  // namespace leasehold::storage
