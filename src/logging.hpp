// The log: one event a line, typed fields, for people or as JSON. Lines are written by a thread of
// their own; when it falls behind the oldest waiting ones are dropped and counted, so that nothing
// that decides ever waits for a disk or a terminal.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

namespace spdlog {
class logger;
namespace sinks {
class sink;
}
namespace details {
class thread_pool;
}
}  // namespace spdlog

namespace leasehold::server {

enum class log_level : std::uint8_t { trace, debug, info, warn, error };
enum class log_form : std::uint8_t { human, json };

/// A field has a name of ours and a value; text from outside is escaped and cut. Tokens, payloads
/// and headers are never fields.
struct log_field {
  std::string_view name;
  std::variant<std::int64_t, bool, std::string_view> value;

  log_field(std::string_view n, std::int64_t v) : name(n), value(v) {}
  log_field(std::string_view n, int v) : name(n), value(std::int64_t{v}) {}
  log_field(std::string_view n, bool v) : name(n), value(v) {}
  log_field(std::string_view n, std::string_view v) : name(n), value(v) {}
  log_field(std::string_view n, const std::string& v) : name(n), value(std::string_view(v)) {}
  log_field(std::string_view n, const char* v) : name(n), value(std::string_view(v)) {}
};

/// Any thread.
class log {
 public:
  /// To standard error: coloured for people on a terminal, else as `form` says.
  log(log_level level, log_form form);
  /// To a sink of the caller's.
  log(log_level level, log_form form, std::shared_ptr<spdlog::sinks::sink> to,
      std::size_t waiting_lines = 8192);
  ~log();
  log(const log&) = delete;
  log& operator=(const log&) = delete;

  /// `what` is one of our own words, such as "session opened".
  void write(log_level level, std::string_view what, std::initializer_list<log_field> fields = {});
  void set_level(log_level level);
  [[nodiscard]] bool writes(log_level level) const;
  /// Lines that were dropped because the writer fell behind.
  [[nodiscard]] std::int64_t dropped() const;
  /// Waits until all that was written is out; for the end of the process.
  void close();

 private:
  log_form form_;
  std::shared_ptr<spdlog::details::thread_pool> writer_;
  std::shared_ptr<spdlog::logger> lines_;
};

/// "info" and so on; info for a word that is none.
log_level log_level_from_word(std::string_view word) noexcept;
/// "auto" asks whether standard error is a terminal.
log_form log_form_from_word(std::string_view word) noexcept;

/// The text of a line without its time and level, as write() makes it.
std::string log_line(log_form form, std::string_view what, std::initializer_list<log_field> fields);

}  // namespace leasehold::server
