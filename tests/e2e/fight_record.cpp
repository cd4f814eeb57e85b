#include "fight_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>

namespace leasehold::e2e {
namespace {

namespace json = boost::json;

constexpr auto never = std::numeric_limits<std::int64_t>::max();

std::int64_t number(const json::object& row, std::string_view column) {
  const auto* cell = row.if_contains(column);
  return cell != nullptr && cell->is_int64() ? cell->get_int64() : 0;
}

std::string text(const json::object& row, std::string_view column) {
  const auto* cell = row.if_contains(column);
  return cell != nullptr && cell->is_string() ? std::string(cell->get_string()) : std::string();
}

/// A grant in the evidence: it ends before the row that ended it.
struct told_grant {
  std::string holder;
  std::int64_t first_row = 0;
  std::int64_t end_row = never;
};

using told_grants = std::map<std::pair<std::string, std::int64_t>, told_grant>;

/// The grants of the evidence; what is wrong with them by themselves is added to `faults`.
told_grants read_evidence(const std::vector<json::object>& evidence,
                          std::vector<std::string>& faults) {
  told_grants out;
  std::map<std::string, std::int64_t> held;     // the token that is live, by lease
  std::map<std::string, std::int64_t> highest;  // ever granted, by lease
  for (const auto& row : evidence) {
    if (text(row, "kind") != "lock") continue;
    const auto lease = text(row, "lease_id");
    const auto token = number(row, "generation");
    const auto at = number(row, "row");
    const bool is_active = text(row, "state") == "active";
    const auto live = held.find(lease);
    if (live != held.end() && (!is_active || live->second != token)) {
      out[{lease, live->second}].end_row = at;
      if (is_active) faults.push_back(fmt::format("row {} grants {} while it is held", at, lease));
      held.erase(live);
    }
    if (!is_active || held.contains(lease)) continue;
    if (token <= highest[lease]) {
      faults.push_back(
          fmt::format("row {} grants {} token {} after {}", at, lease, token, highest[lease]));
    }
    highest[lease] = token;
    held[lease] = token;
    out[{lease, token}] = {text(row, "holder_identity"), at, never};
  }
  return out;
}

}  // namespace

void fight_record::read(const std::filesystem::path& log) {
  std::ifstream in(log);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string what;
    std::string lease;
    std::string holder;
    std::int64_t token = 0;
    std::int64_t row = 0;
    words >> what >> lease >> token;
    if (what == "written") ++written;
    if (what == "stale") ++refused;
    if (what == "failed") ++failed;
    if (what == "granted" && words >> row >> holder) {
      if (!grants.emplace(std::pair(lease, token), seen_grant{holder, row, row}).second) {
        faults.push_back(fmt::format("token {} of {} was granted twice", token, lease));
      }
    } else if (what == "kept" && words >> row) {
      auto& seen = grants[{lease, token}];
      seen.last_row = std::max(seen.last_row, row);
    }
  }
}

std::vector<std::string> faults_of_intervals(const fight_record& record) {
  auto faults = record.faults;
  // By lease, then by token: rows must rise in the same order.
  const auto& grants = record.grants;
  for (auto at = grants.begin(); at != grants.end(); ++at) {
    const auto next = std::next(at);
    if (next == grants.end() || next->first.first != at->first.first) continue;
    if (next->second.first_row > at->second.last_row) continue;
    faults.push_back(fmt::format("{}: token {} was held up to row {}, token {} from row {}",
                                 at->first.first, at->first.second, at->second.last_row,
                                 next->first.second, next->second.first_row));
  }
  return faults;
}

std::vector<std::string> faults_against(const fight_record& record,
                                        const std::vector<json::object>& evidence) {
  std::vector<std::string> faults;
  const auto told = read_evidence(evidence, faults);
  for (const auto& [id, seen] : record.grants) {
    const auto at = told.find(id);
    if (at == told.end()) {
      faults.push_back(
          fmt::format("{}: the evidence has no grant of token {}", id.first, id.second));
      continue;
    }
    const auto& grant = at->second;
    if (grant.holder == seen.holder && grant.first_row <= seen.first_row &&
        seen.last_row < grant.end_row) {
      continue;
    }
    faults.push_back(fmt::format(
        "{}: {} saw token {} at rows {} to {}; in the evidence {} has it from {} until {}",
        id.first, seen.holder, id.second, seen.first_row, seen.last_row, grant.holder,
        grant.first_row, grant.end_row));
  }
  return faults;
}

std::vector<std::string> faults_of_target(
    const std::vector<std::pair<std::string, std::int64_t>>& written) {
  std::vector<std::string> faults;
  std::map<std::string, std::int64_t> highest;
  for (const auto& [lease, token] : written) {
    auto& before = highest[lease];
    if (token < before) {
      faults.push_back(fmt::format("{}: the target took token {} after {}", lease, token, before));
    }
    before = std::max(before, token);
  }
  return faults;
}

}  // namespace leasehold::e2e
