// A PostgreSQL store in the server of tools/pg-sandbox that the test program runs in.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "src/store/postgres_epoch.hpp"
#include "src/store/postgres_store.hpp"
#include "support/eventually.hpp"
#include "tests/store/store_conformance.hpp"

namespace leasehold::tests {

/// Host, port, user and database are in the environment (tools/pg-sandbox CMD).
inline storage::postgres_access sandbox_access(std::string owner = "test") {
  return {"postgresql://", std::move(owner), {}};
}

inline storage::postgres_connection sandbox_session(const std::string& owner = "other",
                                                    const std::string& url = "postgresql://") {
  auto opened = storage::postgres_connection::open({url, owner, {}});
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

/// Without the tables of the test before.
inline void empty_database() {
  auto session = sandbox_session();
  run_sql(session, "DROP SCHEMA IF EXISTS leasehold CASCADE");
}

/// The epoch's row, by a session of its own.
inline storage::postgres_epoch epoch_row(const std::string& owner = "keeper") {
  auto opened = storage::postgres_epoch::open(sandbox_access(owner));
  if (const auto* fault = std::get_if<actors::store_error>(&opened)) {
    std::fprintf(stderr, "%s\n", fault->sentence.c_str());
    std::abort();
  }
  return std::move(std::get<storage::postgres_epoch>(opened));
}

/// Takes the epoch after whatever there is. As a standby does, it comes again while the session of
/// the former owner, which it ends, still holds the row.
inline std::int64_t take_epoch(const std::string& owner = "test") {
  auto row = epoch_row();
  std::int64_t epoch = 0;
  EXPECT_TRUE(eventually([&] {
    const auto taken = row.take(expect(row.read()), owner, "127.0.0.1:7400");
    if (const auto* fault = std::get_if<actors::store_error>(&taken)) {
      EXPECT_EQ(fault->what, actors::store_error::kind::busy) << fault->sentence;
      return false;
    }
    const auto& state = std::get<std::optional<storage::epoch_state>>(taken);
    if (state) epoch = state->epoch;
    return state.has_value();
  }));
  return epoch;
}

inline std::unique_ptr<actors::store> open_postgres(storage::postgres_options how = {}) {
  if (how.access.owner.empty()) how.access = sandbox_access();
  if (how.epoch == 0) how.epoch = take_epoch(how.access.owner);
  return expect(storage::open_postgres_store(how));
}

}  // namespace leasehold::tests
