// The tables of a store as a copy sees them: the same rows in whichever database, told by their
// shapes, so that a copy from one kind to the other is a copy of rows.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "leasehold/actors/store.hpp"
#include "src/store/store_source.hpp"
#include "src/store/unfinished_copy.hpp"

namespace leasehold::storage {

/// `key`: a tenant or lease, which is text in SQLite and bytes in PostgreSQL.
enum class cell_kind : std::uint8_t { integer, text, key, bytes };

struct copied_column {
  std::string_view name;
  cell_kind kind;
};

struct copied_table {
  std::string_view name;
  std::span<const copied_column> columns;
};

/// All tables that hold rows, in the order in which they are copied. What the store says about
/// itself (store_facts) is none of them.
std::span<const copied_table> copied_tables() noexcept;

using copied_cell = std::variant<std::int64_t, std::string>;
using copied_row = std::vector<copied_cell>;

/// Roughly the bytes that a row takes.
std::size_t size_of(const copied_row& row) noexcept;

/// A store that is copied, in one consistent view. One thread at a time.
class table_source {
 public:
  using fault = std::optional<actors::store_error>;
  virtual ~table_source() = default;

  /// For people; holds no password.
  [[nodiscard]] virtual std::string name() const = 0;
  /// Begins the view. `facts` and `head` are as of it.
  virtual fault begin() = 0;
  [[nodiscard]] virtual const store_facts& facts() const = 0;
  [[nodiscard]] virtual const actors::log_head& head() const = 0;
  virtual actors::store_result<std::int64_t> count(const copied_table& of) = 0;
  /// Ends with the first fault of `out`.
  virtual fault each_row(const copied_table& of, const std::function<fault(copied_row&&)>& out) = 0;
  /// Ends the view. True: a coordinator may have written since `begin`, so that what it granted is
  /// not in the copy.
  virtual actors::store_result<bool> end() = 0;
};

/// The store that a copy is made into. Until `finish` it is marked, and nobody serves or reads it.
class table_target {
 public:
  using fault = std::optional<actors::store_error>;
  virtual ~table_target() = default;

  [[nodiscard]] virtual std::string name() const = 0;
  /// Makes the tables and the mark. Refuses a store that has rows, one that is in use, and a copy
  /// that was not finished, unless `restart`: that is emptied first.
  virtual fault begin(std::int64_t shards, bool restart) = 0;
  virtual fault put(const copied_table& into, std::span<const copied_row> rows) = 0;
  /// What the store says about itself, with what `is_backup` means for whoever serves it.
  virtual fault put_facts(const store_facts& facts, bool is_backup) = 0;
  virtual actors::store_result<std::int64_t> count(const copied_table& of) = 0;
  /// Reads it although it is marked.
  virtual actors::store_result<std::unique_ptr<store_source>> read_back() = 0;
  /// Takes the mark away: durable when it returns.
  virtual fault finish(const actors::log_head& head) = 0;
};

actors::store_result<std::unique_ptr<table_source>> open_table_source(const store_place& place);
actors::store_result<std::unique_ptr<table_target>> open_table_target(const store_place& place);

std::unique_ptr<table_target> make_sqlite_target(const std::filesystem::path& directory);
actors::store_result<std::unique_ptr<table_source>> open_sqlite_tables(
    const std::filesystem::path& directory);
actors::store_result<std::unique_ptr<table_target>> open_postgres_target(
    const postgres_place& place);
actors::store_result<std::unique_ptr<table_source>> open_postgres_tables(
    const postgres_place& place);

}  // namespace leasehold::storage
