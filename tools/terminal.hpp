// How the program speaks to people: colour where a terminal shows it, tables, a progress bar.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::tools {

/// Colours by meaning; which escape each becomes is decided in one place.
enum class tone : std::uint8_t { plain, strong, good, bad, warning, faint };

/// True when `descriptor` is a terminal, NO_COLOR is unset or empty, and TERM is not "dumb".
bool shows_colour(int descriptor);

/// The text in that tone on standard output; unchanged where colour does not show.
std::string toned(std::string_view text, tone how);

/// A tone for a state, a decision or a class of `leasehold`.
tone tone_of(std::string_view word);

/// Control characters, marks of direction and broken UTF-8 are escaped ("\u202e", "\xff"), so that
/// what a worker sent can neither steer a terminal nor change the order of what it shows.
std::string printable(std::string_view text);

/// Prints a line that a program wrote for another one: unchanged into a file or pipe, printable on
/// a terminal.
void write_line(std::string_view line);

/// Coordinator time in ms as "2026-03-01 12:00:00.123" (UTC); "-" for 0.
std::string time_text(std::int64_t at_ms);

/// Columns as wide as their widest cell; numbers to the right. Cells are made printable.
class table {
 public:
  explicit table(std::vector<std::string> headings);
  /// One cell a heading; missing ones are empty.
  void add(std::vector<std::string> cells);
  [[nodiscard]] bool empty() const noexcept { return rows_.empty(); }
  /// The column whose words are coloured by tone_of; none by default.
  void colour_column(std::size_t column) noexcept { coloured_ = column; }
  [[nodiscard]] std::string text() const;

 private:
  [[nodiscard]] std::vector<std::size_t> widths() const;
  std::vector<std::string> headings_;
  std::vector<std::vector<std::string>> rows_;
  std::size_t coloured_ = static_cast<std::size_t>(-1);
};

/// A bar on standard error. Silent when that is no terminal, but for a plain line at the end.
class progress_bar {
 public:
  progress_bar(std::string label, std::int64_t total);
  ~progress_bar();
  progress_bar(const progress_bar&) = delete;
  progress_bar& operator=(const progress_bar&) = delete;
  /// Changes what is full.
  void expect(std::int64_t total) noexcept { total_ = total; }
  /// Draws at most ten times a second. `note` stands behind the bar.
  void show(std::int64_t count, std::string_view note = {});
  /// Draws the last state and ends the line.
  void finish();

 private:
  void draw();
  std::string label_;
  std::string note_;
  std::int64_t total_;
  std::int64_t count_ = 0;
  bool live_;
  bool finished_ = false;
  std::chrono::steady_clock::time_point drawn_{};
};

}  // namespace leasehold::tools
