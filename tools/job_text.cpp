#include "tools/job_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>

#include "tools/arguments.hpp"
#include "tools/output.hpp"
#include "tools/terminal.hpp"

namespace leasehold::tools {
namespace {

namespace json = boost::json;

constexpr std::int64_t longest_wait_at_once_ms = 20'000;
constexpr std::int64_t default_wait_ms = 3'600'000;

void add_line(std::string& out, std::string_view name, const std::string& value) {
  if (value.empty() || value == "0" || value == "{}" || value == "false") return;
  out += fmt::format("  {:<16} {}\n", name, printable(value));
}

void add_time(std::string& out, std::string_view name, const json::object& job,
              std::string_view key) {
  if (const auto at = number_in(job, key); at > 0) add_line(out, name, time_text(at));
}

constexpr std::size_t longest_payload_shown = 200;

/// The payload, where the caller may see it; a long one only by its beginning.
void add_payload(std::string& out, const json::object& job) {
  const bool is_text = job.contains("payload");
  auto shown = printable(text_in(job, is_text ? "payload" : "payload_base64"));
  if (shown.empty()) return;
  if (shown.size() > longest_payload_shown) {
    auto end = longest_payload_shown;
    while ((static_cast<unsigned char>(shown[end]) & 0xC0U) == 0x80U) --end;
    shown.resize(end);
    shown += "... (--json shows all)";
  }
  out += fmt::format("  {:<16} {}\n", is_text ? "payload" : "payload (base64)", shown);
}

exit_code told_end(const api& coordinator, const json::object& job) {
  if (coordinator.line().json) {
    print_json(job);
  } else {
    write_out(describe(job));
  }
  return text_in(job, "state") == "completed" ? exit_code::ok : exit_code::differs;
}

}  // namespace

const json::object& job_in(const json::object& answer) {
  const auto& inner = object_in(answer, "job");
  return inner.empty() ? answer : inner;
}

bool is_settled_word(std::string_view state) {
  return state == "completed" || state == "failed" || state == "cancelled";
}

std::string describe(const json::object& job) {
  const auto state = printable(text_in(job, "state"));
  auto out = fmt::format("{}  {}\n", toned(printable(text_in(job, "job_id")), tone::strong),
                         toned(state, tone_of(state)));
  add_line(out, "queue", cell_in(job, "queue"));
  add_line(out, "priority", cell_in(job, "priority"));
  add_line(out, "labels", cell_in(job, "labels"));
  add_payload(out, job);
  add_line(out, "generation", cell_in(job, "generation"));
  add_line(out, "holder", cell_in(job, "holder_identity"));
  add_line(out, "attempt", cell_in(job, "attempt"));
  add_line(out, "losses", cell_in(job, "losses"));
  add_time(out, "expires", job, "expires_at");
  add_time(out, "not offered before", job, "next_offer_at");
  if (number_in(job, "progress_sequence") > 0) {
    add_line(out, "progress",
             fmt::format("{} (number {})", cell_in(job, "progress_value"),
                         number_in(job, "progress_sequence")));
  }
  add_line(out, "cancel", cell_in(job, "cancel"));
  add_line(out, "unproven", cell_in(job, "unproven"));
  if (flag_in(job, "frozen")) add_line(out, "frozen", "an ownership conflict is open");
  if (const auto result = text_in(job, "terminal_result"); result != "none") {
    add_line(out, "result", result);
  }
  add_line(out, "detail", cell_in(job, "terminal_detail"));
  add_line(out, "re-drive of", cell_in(job, "redrive_of"));
  add_line(out, "newest row", cell_in(job, "row"));
  return out;
}

exit_code wait_until_settled(api& coordinator, const std::string& job, const std::string& limit) {
  const auto chosen = limit.empty() ? std::optional(default_wait_ms) : read_length_ms(limit);
  if (!chosen) {
    return complain(exit_code::malformed,
                    fmt::format("--wait \"{}\" is not a length of time such as 90s or 10m", limit));
  }
  using clock = std::chrono::steady_clock;
  const auto end = clock::now() + std::chrono::milliseconds(*chosen);
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - clock::now()).count();
    const auto wait = std::clamp<std::int64_t>(left, 0, longest_wait_at_once_ms);
    bool is_over = false;
    query target(job_path(job));
    target.add("wait_for", "settled").add("wait_ms", std::to_string(wait));
    const auto result = coordinator.get(
        target.target(),
        [&](const json::object& answer) {
          const auto& found = job_in(answer);
          is_over = is_settled_word(text_in(found, "state")) || left <= 0;
          return is_over ? told_end(coordinator, found) : exit_code::ok;
        },
        std::chrono::milliseconds(wait));
    if (is_over || result != exit_code::ok) return result;
  }
}

std::optional<std::int64_t> read_instant_ms(std::string_view text) {
  if (text.starts_with('+')) {
    const auto length = read_length_ms(text.substr(1));
    if (!length) return {};
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::milliseconds>(now).count() + *length;
  }
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1) return {};
  return value;
}

}  // namespace leasehold::tools
