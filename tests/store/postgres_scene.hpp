// A PostgreSQL store in the server of tools/pg-sandbox that the test program runs in.
#pragma once

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "src/store/postgres_epoch.hpp"
#include "src/store/postgres_store.hpp"
#include "tests/store/store_conformance.hpp"

namespace leasehold::tests {

/// Host, port, user and database are in the environment (tools/pg-sandbox CMD).
inline storage::postgres_access sandbox_access(std::string owner = "test") {
  return {"postgresql://", std::move(owner), {}};
}

inline storage::postgres_connection sandbox_session(const std::string& owner = "other") {
  auto opened = storage::postgres_connection::open(sandbox_access(owner));
  if (const auto* fault = std::get_if<actors::store_error>(&opened)) {
    // Nothing of such a test can go on.
    std::fprintf(stderr, "%s\n", fault->sentence.c_str());
    std::abort();
  }
  return std::move(std::get<storage::postgres_connection>(opened));
}

inline void run_sql(storage::postgres_connection& on, const std::string& sql) {
  const auto fault = on.execute(sql);
  EXPECT_FALSE(fault) << sql << ": " << (fault ? fault->sentence : "");
}

/// Without the tables of the test before, and with what those may have left of settings reset.
inline void empty_database() {
  auto session = sandbox_session();
  run_sql(session, "DROP SCHEMA IF EXISTS leasehold CASCADE");
}

/// Takes the epoch after whatever there is.
inline std::int64_t take_epoch(const std::string& owner = "test") {
  auto epoch = storage::postgres_epoch::open(sandbox_access(owner + "-keeper"));
  if (const auto* fault = std::get_if<actors::store_error>(&epoch)) {
    ADD_FAILURE() << fault->sentence;
    return 0;
  }
  auto& row = std::get<storage::postgres_epoch>(epoch);
  const auto taken = expect(row.take(expect(row.read()), owner, "127.0.0.1:7400"));
  EXPECT_TRUE(taken);
  return taken ? taken->epoch : 0;
}

inline std::unique_ptr<actors::store> open_postgres(storage::postgres_options how = {}) {
  if (how.access.owner.empty()) how.access = sandbox_access();
  if (how.epoch == 0) how.epoch = take_epoch(how.access.owner);
  return expect(storage::open_postgres_store(how));
}

}  // namespace leasehold::tests
