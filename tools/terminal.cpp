#include "tools/terminal.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "src/config_text.hpp"
#include "tools/output.hpp"

namespace leasehold::tools {
namespace {

std::string_view escape_of(tone how) {
  switch (how) {
    case tone::plain:
      return "";
    case tone::strong:
      return "\x1b[1m";
    case tone::good:
      return "\x1b[32m";
    case tone::bad:
      return "\x1b[31m";
    case tone::warning:
      return "\x1b[33m";
    case tone::faint:
      return "\x1b[2m";
  }
  return "";
}

/// Columns that a terminal needs for UTF-8 text: its code points. Good enough for tables of ids.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || c == '-' || c == '.';
  });
}

void pad_to(std::string& line, std::size_t missing) { line.append(missing, ' '); }

}  // namespace

bool shows_colour(int descriptor) {
  const char* refused = std::getenv("NO_COLOR");
  if (refused != nullptr && *refused != '\0') return false;
  const char* kind = std::getenv("TERM");
  if (kind != nullptr && std::string_view(kind) == "dumb") return false;
  return ::isatty(descriptor) == 1;
}

std::string toned(std::string_view text, tone how) {
  static const bool colour = shows_colour(STDOUT_FILENO);
  if (!colour || how == tone::plain) return std::string(text);
  return fmt::format("{}{}\x1b[0m", escape_of(how), text);
}

tone tone_of(std::string_view word) {
  using entry = std::pair<std::string_view, tone>;
  static constexpr std::array known{
      entry{"completed", tone::good},    entry{"active", tone::good},
      entry{"accepted", tone::good},     entry{"applied", tone::good},
      entry{"failed", tone::bad},        entry{"rejected", tone::bad},
      entry{"expired", tone::warning},   entry{"unresolved", tone::warning},
      entry{"revoked", tone::warning},   entry{"retry_wait", tone::warning},
      entry{"cancelled", tone::warning}, entry{"blocked", tone::bad},
      entry{"dispatched", tone::good},   entry{"ignored", tone::faint},
      entry{"closed", tone::faint},      entry{"deferred", tone::faint},
      entry{"vacant", tone::faint}};
  for (const auto& [text, how] : known) {
    if (text == word) return how;
  }
  return tone::plain;
}

std::string printable(std::string_view text) {
  return server::config_text::printable(text, std::string::npos);
}

void write_line(std::string_view line) {
  static const bool is_terminal = ::isatty(STDOUT_FILENO) == 1;
  if (is_terminal && line.ends_with('\r')) line.remove_suffix(1);
  print("{}\n", is_terminal ? printable(line) : std::string(line));
}

std::string time_text(std::int64_t at_ms) {
  if (at_ms <= 0) return "-";
  const std::chrono::sys_time<std::chrono::milliseconds> at{std::chrono::milliseconds(at_ms)};
  return fmt::format("{:%Y-%m-%d %H:%M:%S}.{:03}", std::chrono::floor<std::chrono::seconds>(at),
                     at_ms % 1000);
}

table::table(std::vector<std::string> headings) : headings_(std::move(headings)) {}

void table::add(std::vector<std::string> cells) {
  cells.resize(headings_.size());
  for (auto& cell : cells) cell = printable(cell);
  rows_.push_back(std::move(cells));
}

std::vector<std::size_t> table::widths() const {
  std::vector<std::size_t> widest;
  for (const auto& heading : headings_) widest.push_back(width_of(heading));
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widest[i] = std::max(widest[i], width_of(row[i]));
  }
  return widest;
}

std::string table::text() const {
  const auto widest = widths();
  std::string out;
  const auto add_line = [&](const std::vector<std::string>& cells, bool is_heading) {
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::size_t missing = widest[i] - width_of(cells[i]);
      const bool to_the_right = !is_heading && is_number(cells[i]);
      const tone how = is_heading ? tone::strong : i == coloured_ ? tone_of(cells[i]) : tone::plain;
      if (to_the_right) pad_to(line, missing);
      line += toned(cells[i], how);
      if (!to_the_right && i + 1 < cells.size()) pad_to(line, missing);
      if (i + 1 < cells.size()) line += "  ";
    }
    out += line + '\n';
  };
  add_line(headings_, true);
  for (const auto& row : rows_) add_line(row, false);
  return out;
}

progress_bar::progress_bar(std::string label, std::int64_t total)
    : label_(std::move(label)), total_(total), live_(::isatty(STDERR_FILENO) == 1) {}

progress_bar::~progress_bar() { finish(); }

void progress_bar::show(std::int64_t count, std::string_view note) {
  count_ = count;
  note_ = note;
  const auto now = std::chrono::steady_clock::now();
  if (!live_ || (now - drawn_ < std::chrono::milliseconds(100) && count < total_)) return;
  drawn_ = now;
  draw();
}

void progress_bar::draw() {
  constexpr std::int64_t cells = 30;
  const std::int64_t full = total_ > 0 ? std::min(cells, cells * count_ / total_) : cells;
  const std::string bar(static_cast<std::size_t>(full), '#');
  print_error("\r\x1b[K{} [{:<30}] {}/{} {}", label_, bar, count_, total_, note_);
  std::fflush(stderr);
}

void progress_bar::finish() {
  if (finished_) return;
  finished_ = true;
  if (live_) {
    draw();
    print_error("\n");
  } else {
    print_error("{}: {}/{} {}\n", label_, count_, total_, note_);
  }
}

}  // namespace leasehold::tools
