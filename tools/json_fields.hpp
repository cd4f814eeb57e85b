// Reading JSON without surprises: a member that is missing or of another type is empty.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cstdint>
#include <string>
#include <string_view>

namespace leasehold::tools {

std::string text_in(const boost::json::object& from, std::string_view key);
std::int64_t number_in(const boost::json::object& from, std::string_view key);
bool flag_in(const boost::json::object& from, std::string_view key);
const boost::json::object& object_in(const boost::json::object& from, std::string_view key);
const boost::json::array& array_in(const boost::json::object& from, std::string_view key);
/// Any member as a table cell.
std::string cell_in(const boost::json::object& from, std::string_view key);

/// Prints a document on one line.
void print_json(const boost::json::object& document);

}  // namespace leasehold::tools
