#include "tools/json_fields.hpp"

#include <fmt/format.h>

#include <boost/json/serialize.hpp>

#include "tools/output.hpp"

namespace leasehold::tools {
namespace {

namespace json = boost::json;

const json::value* member(const json::object& from, std::string_view key) {
  return from.if_contains(key);
}

}  // namespace

std::string text_in(const json::object& from, std::string_view key) {
  const auto* found = member(from, key);
  return found != nullptr && found->is_string() ? std::string(found->get_string()) : std::string();
}

std::int64_t number_in(const json::object& from, std::string_view key) {
  const auto* found = member(from, key);
  return found != nullptr && found->is_int64() ? found->get_int64() : 0;
}

bool flag_in(const json::object& from, std::string_view key) {
  const auto* found = member(from, key);
  return found != nullptr && found->is_bool() && found->get_bool();
}

const json::object& object_in(const json::object& from, std::string_view key) {
  static const json::object none;
  const auto* found = member(from, key);
  return found != nullptr && found->is_object() ? found->get_object() : none;
}

const json::array& array_in(const json::object& from, std::string_view key) {
  static const json::array none;
  const auto* found = member(from, key);
  return found != nullptr && found->is_array() ? found->get_array() : none;
}

std::string cell_in(const json::object& from, std::string_view key) {
  const auto* found = member(from, key);
  if (found == nullptr || found->is_null()) return {};
  return found->is_string() ? std::string(found->get_string()) : json::serialize(*found);
}

void print_json(const json::object& document) { print("{}\n", json::serialize(document)); }

}  // namespace leasehold::tools
