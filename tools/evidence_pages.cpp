#include "tools/evidence_pages.hpp"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <string>

namespace leasehold::tools {
namespace {

namespace json = boost::json;

/// 0: the line is no row.
std::int64_t row_of(std::string_view line) {
  boost::system::error_code error;
  const auto row = json::parse(line, error);
  return error || !row.is_object() ? 0 : number_in(row.get_object(), "row");
}

}  // namespace

exit_code ask_newest_row(api& coordinator, std::int64_t& newest) {
  return coordinator.get("/v1/head", [&](const json::object& head) {
    newest = number_in(head, "row");
    return exit_code::ok;
  });
}

exit_code each_row(api& coordinator, row_range which,
                   const std::function<bool(std::string_view line)>& use,
                   const std::function<void(std::int64_t row)>& pass) {
  bool broken = false;
  bool enough = false;
  // A page ends where it is full, and may reach beyond the range: the log goes on growing.
  const auto take = [&](std::string_view line) {
    const auto row = row_of(line);
    broken = row == 0;
    if (broken) return false;
    enough = row <= which.last && !use(line);
    return !enough;
  };
  for (std::int64_t from = which.first; from <= which.last;) {
    query target("/v1/evidence");
    target.add("from", std::to_string(from));
    std::int64_t next = 0;
    const auto read = coordinator.page(target.target(), take, next);
    if (broken) return complain(exit_code::broken, "a line of the evidence is no row");
    if (read != exit_code::ok) return read;
    if (enough || next <= from) break;
    from = next;
    if (pass) pass(std::min(from - 1, which.last));
  }
  return exit_code::ok;
}

}  // namespace leasehold::tools
