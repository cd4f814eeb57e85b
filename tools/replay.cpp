// `leasehold replay`: scenario files through the rules, on virtual time.
#include "tools/replay.hpp"

#include <array>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

#include "tools/output.hpp"
#include "tools/subcommands.hpp"
#include "tools/terminal.hpp"

namespace leasehold::tools {
namespace {

struct replay_options {
  std::vector<std::string> files;
  bool check = false;
  bool hide_labels = false;
  std::string answers;
};

/// Standard output, written in large pieces.
class output {
 public:
  output() = default;
  output(const output&) = delete;
  output& operator=(const output&) = delete;
  ~output() { flush(); }

  [[nodiscard]] std::string& text() noexcept { return text_; }
  void relieve() {
    if (text_.size() >= enough) flush();
  }
  void flush() {
    write_out(text_);
    flush_output();
    text_.clear();
  }

 private:
  static constexpr std::size_t enough = std::size_t{1} << 20;
  std::string text_;
};

exit_code malformed(const std::string& path, const std::string& sentence) {
  print_error("leasehold replay: {}: {}.\n", printable(path), printable(sentence));
  return exit_code::malformed;
}

constexpr std::size_t longest_scenario = std::size_t{64} << 20;

std::optional<std::string> read_text(const std::string& path, std::string& fault) {
  std::ifstream file(path, std::ios::binary);
  fault = "the file cannot be read";
  // A directory opens like a file, and then yields nothing.
  if (!file || file.peek() == std::ifstream::traits_type::eof()) {
    if (!file.eof()) return std::nullopt;
    return std::string{};
  }
  std::string text;
  std::array<char, std::size_t{64} * 1024> part{};
  while (file.read(part.data(), part.size()), file.gcount() > 0) {
    text.append(part.data(), static_cast<std::size_t>(file.gcount()));
    if (text.size() <= longest_scenario) continue;
    fault = fmt::format("the file has more than {} bytes", longest_scenario);
    return std::nullopt;
  }
  if (file.bad()) return std::nullopt;
  return text;
}

/// Runs `use` with each file in turn, up to the first that is malformed, or until nobody can read
/// what it prints.
template <class Use>
exit_code each_file(const replay_options& options, output& out, Use&& use) {
  for (const auto& path : options.files) {
    std::string fault;
    const auto text = read_text(path, fault);
    if (!text) {
      out.flush();
      return malformed(path, fault);
    }
    const auto parsed = read_scenario(*text);
    if (const auto* bad = std::get_if<malformed_scenario>(&parsed)) {
      out.flush();
      return malformed(path, bad->sentence);
    }
    use(path, std::get<scenario>(parsed));
    out.relieve();
    if (output_is_lost()) break;
  }
  return exit_code::ok;
}

exit_code print(const replay_options& options) {
  output out;
  return each_file(options, out, [&](const std::string& path, const scenario& file) {
    if (options.hide_labels) {
      print_inputs(path, file, out.text());
    } else {
      print_rows(file, out.text());
    }
  });
}

exit_code check(const replay_options& options) {
  output out;
  check_count count;
  const auto read = each_file(options, out, [&](const std::string& path, const scenario& file) {
    check_rows(path, file, count, out.text());
  });
  if (read != exit_code::ok) return read;
  out.text() += std::to_string(count.files) + " files, " + std::to_string(count.expectations) +
                " expectations, " + std::to_string(count.differences) + " differences\n";
  return count.differences == 0 ? exit_code::ok : exit_code::differs;
}

exit_code grade(const replay_options& options) {
  std::string fault;
  const auto text = read_text(options.answers, fault);
  if (!text) return malformed(options.answers, fault);
  const auto parsed = read_answers(*text);
  if (const auto* bad = std::get_if<malformed_answers>(&parsed)) {
    return malformed(options.answers, bad->sentence);
  }
  output out;
  grade_count count;
  const auto read = each_file(options, out, [&](const std::string& path, const scenario& file) {
    grade_steps(path, file, std::get<learners_answers>(parsed), count, out.text());
  });
  if (read != exit_code::ok) return read;
  out.text() +=
      std::to_string(count.right) + " of " + std::to_string(count.steps) + " steps right\n";
  return count.right == count.steps ? exit_code::ok : exit_code::differs;
}

constexpr auto footer =
    "Rows are JSON objects, one a line, with the columns that section 8 of docs/PROTOCOL.md "
    "lists.\n"
    "--check prints each column that differs from a file's `expect` and `final`, and a count.\n"
    "--hide-labels prints, for each step, `file`, `scenario`, `step`, `at`, `event`, what the "
    "input\n"
    "  named, and the policy, without anything that was decided.\n"
    "--grade reads JSON lines such as\n"
    "  {\"file\": \"a.json\", \"step\": 3, \"decision\": \"rejected\", \"reason\": "
    "\"lease_expired\"}\n"
    "  (`scenario` may stand for `file`; with a single file neither is needed) and compares them "
    "with\n"
    "  the decision about each step: the first row whose event is the step's. A step without an\n"
    "  answer counts as wrong; a tick, and a recover that changes nothing, ask for none.\n"
    "Exit codes: 0; 1 when --check or --grade finds a difference; 2 when a file is malformed.\n"
    "Examples:\n"
    "  leasehold replay tests/scenario/probe-2-ack-is-not-completion.json\n"
    "  leasehold replay --check tests/scenario/*.json\n";

}  // namespace

void add_replay(CLI::App& app, command_line& line) {
  auto options = std::make_shared<replay_options>();
  auto* command =
      app.add_subcommand("replay", "Run scenario files through the rules, print the rows");
  command->add_option("FILE", options->files, "Scenario files, in this order")->required();
  auto* check_flag = command->add_flag(
      "--check", options->check, "Compare with what the files expect instead of printing rows");
  auto* hide = command->add_flag("--hide-labels", options->hide_labels,
                                 "Print the inputs only, without what was decided");
  auto* answers =
      command->add_option("--grade", options->answers,
                          "Compare a learner's decisions, as JSON lines, with the right ones");
  check_flag->excludes(hide)->excludes(answers);
  hide->excludes(answers);
  command->footer(footer);
  command->callback([options, &line] {
    line.result = options->check              ? check(*options)
                  : !options->answers.empty() ? grade(*options)
                                              : print(*options);
  });
}

}  // namespace leasehold::tools
