#include "tools/lock_text.hpp"

#include <fmt/format.h>

#include "leasehold/protocol/lock_key.hpp"
#include "tools/api.hpp"
#include "tools/json_fields.hpp"
#include "tools/terminal.hpp"

namespace leasehold::tools {
namespace {

namespace json = boost::json;

constexpr std::string_view lease_mark = "k:";
constexpr std::size_t lease_digits = 64;

bool is_lease_id(std::string_view key) {
  return key.size() == lease_mark.size() + lease_digits && key.starts_with(lease_mark) &&
         key.find_first_not_of("0123456789abcdef", lease_mark.size()) == key.npos;
}

void add_line(std::string& out, std::string_view name, const std::string& value) {
  if (value.empty() || value == "0" || value == "{}" || value == "false") return;
  out += fmt::format("  {:<16} {}\n", name, printable(value));
}

void add_time(std::string& out, std::string_view name, const json::object& lock,
              std::string_view key) {
  if (const auto at = number_in(lock, key); at > 0) add_line(out, name, time_text(at));
}

void add_length(std::string& out, std::string_view name, const json::object& lock,
                std::string_view key) {
  if (const auto ms = number_in(lock, key); ms > 0) add_line(out, name, fmt::format("{} ms", ms));
}

/// The normalised target, with what was typed where that differs.
std::string target_text(const json::object& lock) {
  const auto& target = object_in(lock, "target");
  const auto kind = text_in(target, "kind");
  const auto typed = text_in(target, "typed");
  const auto normalised = text_in(target, "normalised");
  if (normalised.empty()) return {};
  const bool differs = !typed.empty() && typed != normalised;
  return fmt::format("{}:{}{}", kind, normalised, differs ? fmt::format(" (typed {})", typed) : "");
}

}  // namespace

const json::object& lock_in(const json::object& answer) {
  const auto& inner = object_in(answer, "lock");
  return inner.empty() ? answer : inner;
}

std::string lock_path(std::string_view key, std::string_view suffix) {
  return fmt::format("/v1/locks/{}{}", url_encoded(key), suffix);
}

std::string_view naming_member(std::string_view key) {
  return is_lease_id(key) ? "lease_id" : "key";
}

std::string find_key_fault(const std::string& key) {
  if (is_lease_id(key) || protocol::parse_canonical_key(key)) return {};
  return "a lock is named by its canonical key (TENANT/PROGRAM/KIND:TARGET/WORKFLOW/CLASS, as "
         "leasehold locks and leasehold key show it) or by its lease id (k: and 64 digits)";
}

std::string describe_lock(const json::object& lock) {
  const auto state = printable(text_in(lock, "state"));
  auto out = fmt::format("{}  {}\n", toned(printable(text_in(lock, "key")), tone::strong),
                         toned(state, tone_of(state)));
  add_line(out, "target", target_text(lock));
  add_line(out, "lease", cell_in(lock, "lease_id"));
  add_line(out, "holder", cell_in(lock, "holder"));
  add_line(out, "fencing token", cell_in(lock, "fencing_token"));
  add_time(out, "acquired", lock, "acquired_at");
  add_time(out, "renewed", lock, "renewed_at");
  add_line(out, "renews", cell_in(lock, "renew_sequence"));
  add_time(out, "expires", lock, "expires_at");
  add_length(out, "ttl", lock, "ttl_ms");
  add_length(out, "max lifetime", lock, "max_lifetime_ms");
  add_length(out, "lock delay", lock, "lock_delay_ms");
  add_time(out, "not granted before", lock, "next_offer_at");
  add_line(out, "execution", cell_in(lock, "execution_id"));
  add_line(out, "trace", cell_in(lock, "trace_id"));
  add_line(out, "metadata", cell_in(lock, "metadata"));
  add_line(out, "tied to", cell_in(lock, "tie"));
  if (flag_in(lock, "frozen")) add_line(out, "frozen", "an ownership conflict is open");
  add_line(out, "newest row", cell_in(lock, "row"));
  return out;
}

const std::vector<std::string> lock_headings{"KEY",    "STATE",   "TOKEN",
                                             "HOLDER", "RENEWED", "EXPIRES"};

std::vector<std::string> lock_cells(const json::object& lock) {
  return {cell_in(lock, "key"),
          cell_in(lock, "state"),
          cell_in(lock, "fencing_token"),
          cell_in(lock, "holder"),
          time_text(number_in(lock, "renewed_at")),
          time_text(number_in(lock, "expires_at"))};
}

}  // namespace leasehold::tools
