#include <fmt/format.h>

#include <boost/json.hpp>

#include "tools/api.hpp"
#include "tools/output.hpp"
#include "tools/terminal.hpp"
#include "tools/verify.hpp"

namespace leasehold::tools {
namespace {

namespace json = boost::json;

json::object to_json(const storage::verify_report& report,
                     std::span<const std::string_view> beyond) {
  json::array problems;
  for (const auto& each : report.problems) {
    problems.push_back(json::object{
        {"row", each.row.value}, {"column", each.column}, {"sentence", each.sentence}});
  }
  json::array remarks;
  for (const auto& each : report.remarks) remarks.push_back(json::string(each));
  json::array cannot_see;
  for (const std::string_view each : beyond) cannot_see.push_back(json::string(each));
  return {{"proven", report.proven()},
          {"rows", report.rows},
          {"batches", report.batches},
          {"leases", report.leases},
          {"policies", report.policies},
          {"records", report.records},
          {"passed_over", report.passed_over},
          {"head", report.batches > 0 ? json::value(storage::to_text(report.head)) : json::value()},
          {"problem_count", report.problem_count},
          {"problems", std::move(problems)},
          {"remarks", std::move(remarks)},
          {"cannot_see", std::move(cannot_see)}};
}

void print_problems(const storage::verify_report& report) {
  for (const auto& each : report.problems) {
    const auto where = each.row.value > 0 ? fmt::format("row {}", each.row.value) : "the lines";
    const auto column = each.column.empty() ? "" : fmt::format(", {}", each.column);
    print("{} {}{}: {}\n", toned("wrong:", tone::bad), where, column, printable(each.sentence));
  }
  const auto kept = static_cast<std::int64_t>(report.problems.size());
  if (report.problem_count > kept) {
    print("and {} more\n", report.problem_count - kept);
  }
}

}  // namespace

exit_code print_verdict(const storage::verify_report& report,
                        std::span<const std::string_view> beyond, bool as_json) {
  const auto code = report.proven() ? exit_code::ok : exit_code::differs;
  if (as_json) {
    print_json(to_json(report, beyond));
    return code;
  }
  print_problems(report);
  const auto counts = fmt::format("{} rows of {} leases, {} policies, {} records compared",
                                  report.rows, report.leases, report.policies, report.records);
  if (report.proven()) {
    print("{} every decision follows from its inputs: {}\n", toned("proven:", tone::good), counts);
  } else {
    print("{} {} problems: {}\n", toned("not proven:", tone::bad), report.problem_count, counts);
  }
  if (report.passed_over > 0) {
    print("{} jobs were not compared: they were shown at another time than the rows\n",
          report.passed_over);
  }
  if (report.batches > 0) print("head: {}\n", storage::to_text(report.head));
  if (report.head_was_asked && report.proven()) print("the log extends the head given\n");
  for (const auto& each : report.remarks) {
    print("{} {}\n", toned("note:", tone::warning), printable(each));
  }
  print("What this cannot see:\n");
  for (const std::string_view each : beyond) print("  - {}\n", each);
  return code;
}

exit_code complain_about(const actors::store_error& fault) {
  using kind = actors::store_error::kind;
  return complain(fault.what == kind::foreign ? exit_code::malformed : exit_code::broken,
                  fault.sentence);
}

}  // namespace leasehold::tools
