// A store in a database of a test's own server.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "src/store/postgres_store.hpp"
#include "support/log_place.hpp"
#include "support/one_connection.hpp"

namespace leasehold::tests {

/// Reads the log in the schema of a database with plain SQL.
stored_log read_postgres_log(const std::string& url);

class database_place final : public log_place {
 public:
  /// `reached_by`: the store's URL, which may lead through a proxy; `read_by`: the test's own;
  /// `owner`: what the owners of its epochs are called, before their numbers.
  database_place(std::string reached_by, std::string read_by, std::string owner = "test")
      : reached_by_(std::move(reached_by)),
        read_by_(std::move(read_by)),
        owner_(std::move(owner)) {}

  /// Takes the epoch first, as another coordinator each time.
  actors::store_result<std::unique_ptr<actors::store>> open(const opening& how) override;
  [[nodiscard]] stored_log read() const override { return read_postgres_log(read_by_); }
  [[nodiscard]] actors::store_result<storage::verify_report> verify() const override;

  /// What the store is opened with, besides its URL, owner and epoch.
  storage::postgres_options options;

 private:
  std::string reached_by_;
  std::string read_by_;
  std::string owner_;
  int opened_ = 0;
};

/// The content of a store's tables, which is put back faster than a database is made.
class kept_tables {
 public:
  /// Of the schema `leasehold` of a database that holds a store nobody has open.
  explicit kept_tables(const std::string& url);
  void put_back();

 private:
  one_connection database_;
  std::string put_back_;
};

}  // namespace leasehold::tests
