#include "src/logging.hpp"

#include <fmt/format.h>
#include <spdlog/async_logger.h>
#include <spdlog/details/thread_pool.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <unistd.h>

#include "src/config_text.hpp"

namespace leasehold::server {
namespace {

spdlog::level::level_enum to_spdlog(log_level level) {
  switch (level) {
    case log_level::trace:
      return spdlog::level::trace;
    case log_level::debug:
      return spdlog::level::debug;
    case log_level::info:
      return spdlog::level::info;
    case log_level::warn:
      return spdlog::level::warn;
    case log_level::error:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

std::shared_ptr<spdlog::sinks::sink> standard_error(log_form form) {
  if (form == log_form::human) return std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
  return std::make_shared<spdlog::sinks::stderr_sink_mt>();
}

/// Of one field: a sentence that names a file twice fits, and no peer can fill a disk with one.
constexpr std::size_t longest_text = 768;

/// In quotes; `text` is printable already, so that only quotes and backslashes are left to escape.
std::string in_json(std::string_view text) {
  std::string out = "\"";
  for (const char c : config_text::printable(text, longest_text)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string for_people(std::string_view text) {
  const std::string shown = config_text::printable(text, longest_text);
  const bool plain = !shown.empty() && shown.find_first_of(" \"=") == std::string::npos;
  return plain ? shown : in_json(text);
}

std::string print(log_form form, const log_field& field) {
  if (const auto* number = std::get_if<std::int64_t>(&field.value)) return std::to_string(*number);
  if (const auto* toggle = std::get_if<bool>(&field.value)) return *toggle ? "true" : "false";
  const auto text = std::get<std::string_view>(field.value);
  return form == log_form::json ? in_json(text) : for_people(text);
}

}  // namespace

std::string log_line(log_form form, std::string_view what,
                     std::initializer_list<log_field> fields) {
  std::string out =
      form == log_form::json ? "\"event\":" + in_json(what) : config_text::printable(what);
  for (const log_field& field : fields) {
    if (form == log_form::json) {
      out += ',' + in_json(field.name) + ':' + print(form, field);
    } else {
      out += ' ' + std::string(field.name) + '=' + print(form, field);
    }
  }
  return out;
}

log::log(log_level level, log_form form) : log(level, form, standard_error(form)) {}

log::log(log_level level, log_form form, std::shared_ptr<spdlog::sinks::sink> to,
         std::size_t waiting_lines)
    : form_(form),
      writer_(std::make_shared<spdlog::details::thread_pool>(waiting_lines, 1)),
      lines_(std::make_shared<spdlog::async_logger>(
          "leaseholdd", std::move(to), writer_, spdlog::async_overflow_policy::overrun_oldest)) {
  const char* pattern = form == log_form::json
                            ? R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l",%v})"
                            : "%Y-%m-%d %H:%M:%S.%e %^%-7l%$ %v";
  lines_->set_formatter(
      std::make_unique<spdlog::pattern_formatter>(pattern, spdlog::pattern_time_type::utc));
  lines_->set_level(to_spdlog(level));
  lines_->flush_on(spdlog::level::info);
}

log::~log() { close(); }

void log::write(log_level level, std::string_view what, std::initializer_list<log_field> fields) {
  if (!writes(level)) return;
  const std::string line = log_line(form_, what, fields);
  lines_->log(to_spdlog(level), spdlog::string_view_t(line.data(), line.size()));
}

void log::set_level(log_level level) { lines_->set_level(to_spdlog(level)); }

bool log::writes(log_level level) const {
  return writer_ != nullptr && lines_->should_log(to_spdlog(level));
}

std::int64_t log::dropped() const {
  return writer_ ? static_cast<std::int64_t>(writer_->overrun_counter()) : 0;
}

void log::close() {
  if (!writer_) return;
  lines_->flush();
  writer_.reset();  // joins the writer once it has written what waits
}

log_level log_level_from_word(std::string_view word) noexcept {
  if (word == "trace") return log_level::trace;
  if (word == "debug") return log_level::debug;
  if (word == "warn") return log_level::warn;
  if (word == "error") return log_level::error;
  return log_level::info;
}

log_form log_form_from_word(std::string_view word) noexcept {
  if (word == "human") return log_form::human;
  if (word == "json") return log_form::json;
  return isatty(STDERR_FILENO) == 1 ? log_form::human : log_form::json;
}

}  // namespace leasehold::server
