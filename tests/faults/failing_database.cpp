#include "failing_database.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace leasehold::tests {

namespace {

using namespace std::chrono_literals;

constexpr auto database = "leases";

}  // namespace

storage::postgres_options impatient() {
  storage::postgres_options out;
  out.access.limits = {
      .connect = 2s, .statement = 500ms, .lock = 200ms, .idle_in_transaction = 1s, .answer = 700ms};
  out.retry_for = 300ms;
  out.settle_for = 300ms;
  out.readers = 1;
  return out;
}

failing_database::failing_database()
    : server(postgres_server::settings{{"deadlock_timeout", "50ms"}}),
      place(server.url(database, proxy.directory()), server.url(database)) {
  // To make the schema may take longer than a test waits for anything else.
  place.options.readers = 1;
  server.make_database(database);
  {
    const scene made(place, std::make_shared<manual_clock>());
    EXPECT_FALSE(made.start_error()) << made.start_error()->sentence;
  }
  place.options = impatient();
  kept_.emplace(server.url(database));
}

log_place& failing_database::fresh() {
  kept_->put_back();
  return place;
}

}  // namespace leasehold::tests
