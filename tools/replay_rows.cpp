// Rows, checks and grades of one scenario.
#include <fmt/format.h>

#include <iterator>
#include <optional>
#include <set>

#include "tools/replay.hpp"
#include "tools/replay_text.hpp"

namespace leasehold::tools {

using namespace protocol;

namespace {

using shown_cells = std::map<std::string, cell, std::less<>>;

void run(const scenario& file, const step_listener& listener) {
  scenario_run leases(file.policy, listener);
  for (const auto& step : file.steps) leases.take(step);
}

shown_cells cells_of(std::size_t step, const row& what, const record& after) {
  shown_cells cells;
  write_cells(static_cast<std::int64_t>(step), what, after,
              [&](std::string_view column, const cell& value) { cells.emplace(column, value); });
  return cells;
}

/// Compares what a file expects at one place with the row that it speaks of.
void compare(const std::string& place, const expected_cells& expected,
             const std::optional<shown_cells>& shown, check_count& count, std::string& out) {
  for (const auto& [column, value] : expected) {
    ++count.expectations;
    if (shown && shown->at(column) == value) continue;
    ++count.differences;
    fmt::format_to(std::back_inserter(out), "{}: {} is {}, expected {}\n", place, column,
                   shown ? json_text(shown->at(column)) : "in no row", json_text(value));
  }
}

/// The rows that a file says something about.
struct rows_of_interest {
  const scenario& file;
  std::map<std::size_t, shown_cells> of_step;  ///< the first row whose event is the step's op
  std::map<lease_id, shown_cells> last_of_lease;
  std::set<lease_id> wanted;

  explicit rows_of_interest(const scenario& scenario_file) : file(scenario_file) {
    for (const auto& [lease, cells] : file.final) wanted.insert(lease);
    run(file, [this](std::size_t step, const row& what, const record& after) {
      hear(step, what, after);
    });
  }

  void hear(std::size_t step, const row& what, const record& after) {
    const auto& asked = file.steps[step - 1];
    const bool first = !asked.expect.empty() && asked.what && asked.what->kind == what.kind &&
                       !of_step.contains(step);
    const auto& lease = after.known() || what.input == nullptr ? after.lease : what.input->lease;
    const bool final_one = wanted.contains(lease);
    if (!first && !final_one) return;
    auto cells = cells_of(step, what, after);
    if (final_one) last_of_lease.insert_or_assign(lease, cells);
    if (first) of_step.emplace(step, std::move(cells));
  }
};

template <class Key>
std::optional<shown_cells> find_cells(const std::map<Key, shown_cells>& rows, const Key& key) {
  const auto found = rows.find(key);
  if (found == rows.end()) return std::nullopt;
  return found->second;
}

}  // namespace

void print_rows(const scenario& file, std::string& out) {
  line_writer line(out);
  const cell_sink put = [&](std::string_view column, const cell& value) {
    line.put(column, value);
  };
  run(file, [&](std::size_t step, const row& what, const record& after) {
    line.begin();
    write_cells(static_cast<std::int64_t>(step), what, after, put);
    line.end();
  });
}

void check_rows(std::string_view path, const scenario& file, check_count& count, std::string& out) {
  const rows_of_interest rows(file);
  const std::string in_file = std::string(path) + ": ";
  for (std::size_t step = 1; step <= file.steps.size(); ++step) {
    const auto& asked = file.steps[step - 1];
    if (asked.expect.empty()) continue;
    const auto place =
        in_file + "step " + std::to_string(step) + " (" + std::string(asked.op()) + ')';
    compare(place, asked.expect, find_cells(rows.of_step, step), count, out);
  }
  for (const auto& [lease, cells] : file.final) {
    compare(in_file + "final " + lease.value, cells, find_cells(rows.last_of_lease, lease), count,
            out);
  }
  ++count.files;
}

void grade_steps(std::string_view path, const scenario& file, const learners_answers& answers,
                 grade_count& count, std::string& out) {
  std::map<std::size_t, verdict> right;
  run(file, [&](std::size_t step, const row& what, const record&) {
    const auto& asked = file.steps[step - 1].what;
    if (asked && asked->kind == what.kind) right.try_emplace(step, what.answer);
  });
  for (const auto& [step, answer] : right) {
    const auto number = static_cast<std::int64_t>(step);
    auto given = answers.find({std::string(path), number});
    if (given == answers.end()) given = answers.find({file.name, number});
    if (given == answers.end()) given = answers.find({std::string{}, number});
    const auto wanted = std::string(word(answer.decision)) + ' ' + std::string(word(answer.reason));
    const auto said = given == answers.end() ? std::string("no answer")
                                             : given->second.decision + ' ' + given->second.reason;
    ++count.steps;
    if (said == wanted) {
      ++count.right;
      continue;
    }
    fmt::format_to(std::back_inserter(out), "{}: step {} ({}): {}, right is {}\n", path, step,
                   file.steps[step - 1].op(), said, wanted);
  }
}

}  // namespace leasehold::tools
