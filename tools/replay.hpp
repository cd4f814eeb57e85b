// What `leasehold replay` can do with one scenario, apart from reading files and options.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>

#include "tools/scenario.hpp"

namespace leasehold::tools {

/// Appends the rows of a scenario, one JSON object a line.
void print_rows(const scenario& file, std::string& out);

/// What --check found in the files so far.
struct check_count {
  std::int64_t files = 0;
  std::int64_t expectations = 0;  ///< columns that a file says something about
  std::int64_t differences = 0;
};

/// Appends one line for each column that differs from what the file expects.
void check_rows(std::string_view path, const scenario& file, check_count& count, std::string& out);

/// Appends one JSON object for each step with what it named and the policy that held, and nothing
/// of what was decided: the exercise of --grade.
void print_inputs(std::string_view path, const scenario& file, std::string& out);

/// A learner's decision about one step.
struct learners_answer {
  std::string decision;
  std::string reason;
};

/// All answers of a learner, by file and step. A file is named by its path, or by the text of its
/// key `scenario`; an answer that names neither belongs to the only file there is.
using learners_answers = std::map<std::pair<std::string, std::int64_t>, learners_answer>;

struct malformed_answers {
  std::string sentence;
};
std::variant<learners_answers, malformed_answers> read_answers(std::string_view text);

struct grade_count {
  std::int64_t steps = 0;
  std::int64_t right = 0;
};

/// Appends one line for each step whose answer is missing or differs.
void grade_steps(std::string_view path, const scenario& file, const learners_answers& answers,
                 grade_count& count, std::string& out);

}  // namespace leasehold::tools
