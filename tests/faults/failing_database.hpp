// A database behind a connection that fails, for operation_run.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "operation_run.hpp"
#include "support/database_place.hpp"
#include "support/postgres_proxy.hpp"
#include "support/postgres_server.hpp"

namespace leasehold::tests {

class failing_database final : public failing_ground {
 public:
  failing_database();

  log_place& fresh() override;
  [[nodiscard]] int hits() const override { return proxy.hits(); }
  void mend() override { proxy.heal(); }

  postgres_server server;
  postgres_proxy proxy{server.socket()};
  database_place place;

 private:
  std::optional<kept_tables> kept_;
};

/// Limits so short that a test may wait for them.
storage::postgres_options impatient();

}  // namespace leasehold::tests
