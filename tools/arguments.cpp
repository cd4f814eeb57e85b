#include "tools/arguments.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <fstream>
#include <iostream>
#include <iterator>
#include <utility>

#include "leasehold/protocol/policy.hpp"
#include "src/config_text.hpp"
#include "src/config_units.hpp"
#include "src/http_api_body.hpp"
#include "tools/terminal.hpp"

namespace leasehold::tools {
namespace {

namespace json = boost::json;

std::optional<std::pair<std::string, std::string>> split_pair(const std::string& text) {
  const auto sign = text.find('=');
  if (sign == 0 || sign == std::string::npos) return {};
  return std::pair(text.substr(0, sign), text.substr(sign + 1));
}

std::optional<std::int64_t> read_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

std::optional<json::value> policy_value(const protocol::policy_key& key, const std::string& text) {
  std::optional<std::variant<std::int64_t, std::string>> value;
  if (!key.words.empty()) {
    value = text;
  } else if (const auto number = read_number(text)) {
    value = *number;
  } else if (const auto length = read_length_ms(text); length && key.name.ends_with("_ms")) {
    value = *length;
  }
  protocol::policy probe;
  if (!value || !key.set(probe, *value)) return {};
  return std::visit([](const auto& v) { return json::value(v); }, *value);
}

std::string named_twice(std::string_view option, std::string_view key) {
  return fmt::format("{} {} is given twice: give each key once", option, key);
}

std::string what_fits(const protocol::policy_key& key) {
  if (!key.words.empty()) return fmt::format("one of {}", key.words);
  return key.name.ends_with("_ms") ? "a number of ms or a length of time such as 30s"
                                   : "a whole number";
}

}  // namespace

json::object read_labels(const std::vector<std::string>& pairs, std::string& fault) {
  json::object out;
  for (const auto& text : pairs) {
    const auto pair = split_pair(text);
    if (!pair) {
      fault = fmt::format("--label \"{}\" is not of the form KEY=VALUE", text);
      return {};
    }
    if (out.contains(pair->first)) {
      fault = named_twice("--label", pair->first);
      return {};
    }
    out[pair->first] = pair->second;
  }
  return out;
}

json::object read_policy(const std::vector<std::string>& pairs, std::string& fault) {
  json::object out;
  for (const auto& text : pairs) {
    const auto pair = split_pair(text);
    const auto* key = pair ? protocol::find_policy_key(pair->first) : nullptr;
    if (key == nullptr) {
      fault = fmt::format("--policy \"{}\" is not of the form KEY=VALUE with a key of: ", text);
      for (const auto& known : protocol::policy_keys()) fault += fmt::format("{} ", known.name);
      return {};
    }
    if (out.contains(key->name)) {
      fault = named_twice("--policy", key->name);
      return {};
    }
    auto value = policy_value(*key, pair->second);
    if (!value) {
      fault = fmt::format("--policy {} cannot be \"{}\"; it takes {}", key->name, pair->second,
                          what_fits(*key));
      return {};
    }
    out[pair->first] = std::move(*value);
  }
  return out;
}

std::optional<std::int64_t> read_length_ms(std::string_view text) {
  if (const auto seconds = read_number(text)) {
    if (*seconds < 0 || *seconds > 1'000'000'000) return {};
    return *seconds * 1000;
  }
  return server::read_duration_ms(text);
}

std::string find_id_fault(const std::string& id) {
  return id.empty() ? "a job's id has at least one letter; this one is empty" : "";
}

void put_payload(json::object& body, const std::string& payload) {
  if (server::config_text::is_utf8(payload)) {
    body["payload"] = payload;
  } else {
    body["payload_base64"] = server::to_base64(payload);
  }
}

std::string read_file(const std::string& path, std::size_t limit, std::string& fault) {
  std::ifstream file;
  if (path != "-") file.open(path, std::ios::binary);
  std::istream& from = path == "-" ? std::cin : file;
  std::string out(limit + 1, '\0');
  from.read(out.data(), static_cast<std::streamsize>(out.size()));
  // A folder can be opened; only reading it fails.
  if (from.bad() || (path != "-" && !file.is_open())) {
    fault = fmt::format("{} cannot be read: name a file that you may read", printable(path));
    return {};
  }
  out.resize(static_cast<std::size_t>(from.gcount()));
  if (out.size() > limit) fault = fmt::format("{} has more than {} bytes", path, limit);
  return out;
}

line_read read_line(std::istream& from, std::string& line, std::size_t limit) {
  line.clear();
  std::array<char, std::size_t{8} * 1024> part;
  while (line.size() <= limit) {
    from.getline(part.data(), part.size());
    const auto count = static_cast<std::size_t>(from.gcount());
    if (from.eof() || from.bad() || count == 0) {
      line.append(part.data(), count);
      return line.empty() ? line_read::none : line_read::whole;
    }
    if (!from.fail()) {
      line.append(part.data(), count - 1);  // its end is counted
      return line.size() > limit ? line_read::too_long : line_read::whole;
    }
    line.append(part.data(), count);
    from.clear();
  }
  return line_read::too_long;
}

}  // namespace leasehold::tools
