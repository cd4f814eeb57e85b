// Binary parameters and rows of libpq.
#include <cstring>

#include "src/store/postgres_connection.hpp"

namespace leasehold::storage {

namespace {

// The numbers of built-in types never change (PostgreSQL's pg_type.dat).
constexpr Oid bool_type = 16;
constexpr Oid bytea_type = 17;
constexpr Oid int8_type = 20;
constexpr Oid text_type = 25;
constexpr Oid bytea_array_type = 1001;
constexpr Oid text_array_type = 1009;
constexpr Oid int8_array_type = 1016;

void put(std::string& to, std::uint64_t value, unsigned bytes) {
  for (unsigned i = bytes; i-- > 0;) to.push_back(static_cast<char>(value >> (8 * i)));
}

std::string big_endian(std::int64_t value) {
  std::string bytes;
  put(bytes, static_cast<std::uint64_t>(value), 8);
  return bytes;
}

}  // namespace

postgres_values& postgres_values::add(Oid type, std::string value) {
  types_.push_back(type);
  values_.emplace_back(std::move(value));
  return *this;
}

postgres_values& postgres_values::integer(std::int64_t value) {
  return add(int8_type, big_endian(value));
}

postgres_values& postgres_values::boolean(bool value) {
  return add(bool_type, std::string(1, value ? '\1' : '\0'));
}

postgres_values& postgres_values::text(std::string_view value) {
  return add(text_type, std::string(value));
}

postgres_values& postgres_values::bytes(std::string_view value) {
  return add(bytea_type, std::string(value));
}

postgres_values& postgres_values::null() {
  types_.push_back(0);
  values_.emplace_back(std::nullopt);
  return *this;
}

/// One dimension from 1 on, and each element with its length in front.
postgres_values& postgres_values::array(Oid of, Oid element,
                                        std::span<const std::string_view> values) {
  std::size_t size = 20;
  for (const std::string_view each : values) size += 4 + each.size();
  std::string bytes;
  bytes.reserve(size);
  put(bytes, values.empty() ? 0 : 1, 4);
  put(bytes, 0, 4);
  put(bytes, element, 4);
  if (!values.empty()) {
    put(bytes, values.size(), 4);
    put(bytes, 1, 4);
  }
  for (const std::string_view each : values) {
    put(bytes, each.size(), 4);
    bytes += each;
  }
  return add(of, std::move(bytes));
}

postgres_values& postgres_values::integers(std::span<const std::int64_t> values) {
  std::vector<std::string> each;
  each.reserve(values.size());
  for (const std::int64_t value : values) each.push_back(big_endian(value));
  const std::vector<std::string_view> views(each.begin(), each.end());
  return array(int8_array_type, int8_type, views);
}

postgres_values& postgres_values::texts(std::span<const std::string_view> values) {
  return array(text_array_type, text_type, values);
}

postgres_values& postgres_values::byte_texts(std::span<const std::string_view> values) {
  return array(bytea_array_type, bytea_type, values);
}

int postgres_rows::count() const { return result_ ? PQntuples(result_.get()) : 0; }

bool postgres_rows::is_null(int row, int column) const {
  return PQgetisnull(result_.get(), row, column) != 0;
}

std::string_view postgres_rows::bytes(int row, int column) const {
  return {PQgetvalue(result_.get(), row, column),
          static_cast<std::size_t>(PQgetlength(result_.get(), row, column))};
}

std::int64_t postgres_rows::integer(int row, int column) const {
  const std::string_view big = bytes(row, column);
  if (big.empty() || big.size() > 8) return 0;
  // The sign of a shorter one goes on to the left.
  std::uint64_t value = (static_cast<unsigned char>(big.front()) & 0x80U) != 0 ? ~0ULL : 0;
  for (const char each : big) value = value << 8U | static_cast<unsigned char>(each);
  return static_cast<std::int64_t>(value);
}

bool postgres_rows::boolean(int row, int column) const {
  const std::string_view byte = bytes(row, column);
  return !byte.empty() && byte.front() != '\0';
}

std::string_view postgres_rows::command() const {
  return result_ ? PQcmdStatus(result_.get()) : "";
}

std::int64_t postgres_rows::changed() const {
  if (!result_) return 0;
  const char* count = PQcmdTuples(result_.get());
  return *count == '\0' ? 0 : std::strtoll(count, nullptr, 10);
}

}  // namespace leasehold::storage
