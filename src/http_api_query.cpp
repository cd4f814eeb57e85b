#include "src/http_api_query.hpp"

#include <algorithm>
#include <boost/url/parse.hpp>
#include <boost/url/pct_string_view.hpp>
#include <charconv>

#include "src/config_text.hpp"
#include "src/config_units.hpp"

namespace leasehold::server {
namespace {

std::optional<std::string> decode(std::string_view part) {
  const auto encoded = boost::urls::make_pct_string_view(part);
  if (!encoded) return std::nullopt;
  return encoded->decode();
}

}  // namespace

std::optional<request_target> parse_target(std::string_view target) {
  const auto parsed = boost::urls::parse_origin_form(target);
  if (!parsed || target.size() > 4096) return std::nullopt;
  request_target out;
  for (const auto& part : parsed->encoded_segments())
    out.parts.emplace_back(part.data(), part.size());
  for (const auto& parameter : parsed->params()) {
    if (!config_text::is_utf8(parameter.key) || !config_text::is_utf8(parameter.value)) {
      return std::nullopt;
    }
    out.parameters.emplace_back(parameter.key, parameter.value);
  }
  return out;
}

std::optional<std::string> match_path(const request_target& target, std::string_view pattern) {
  std::string id;
  for (const std::string& part : target.parts) {
    if (!pattern.starts_with('/')) return std::nullopt;
    pattern.remove_prefix(1);
    const std::string_view wanted = pattern.substr(0, pattern.find('/'));
    pattern.remove_prefix(wanted.size());
    if (!wanted.starts_with("{id}")) {
      if (part != wanted) return std::nullopt;
      continue;
    }
    const std::string_view verb = wanted.substr(4);
    if (!part.ends_with(verb)) return std::nullopt;
    auto decoded = decode(std::string_view(part).substr(0, part.size() - verb.size()));
    if (!decoded || decoded->empty()) return std::nullopt;
    id = std::move(*decoded);
  }
  if (!pattern.empty()) return std::nullopt;
  return id;
}

std::optional<std::string> query_reader::text(std::string_view name, std::size_t most_bytes) {
  known_.emplace_back(name);
  std::optional<std::string> found;
  for (const auto& [key, value] : parameters_) {
    if (key != name) continue;
    if (found) refuse("The parameter " + std::string(name) + " stands twice.");
    if (value.empty() || value.size() > most_bytes) {
      refuse("The parameter " + std::string(name) + " must have 1 to " +
             std::to_string(most_bytes) + " bytes.");
    }
    found = value;
  }
  return found;
}

bool query_reader::flag(std::string_view name) {
  known_.emplace_back(name);
  bool there = false;
  for (const auto& [key, value] : parameters_) {
    if (key != name) continue;
    if (!value.empty()) refuse("The parameter " + std::string(name) + " takes no value.");
    there = true;
  }
  return there;
}

std::optional<std::int64_t> query_reader::number(std::string_view name, std::int64_t lowest,
                                                 std::int64_t highest) {
  const auto digits = text(name);
  if (!digits) return std::nullopt;
  std::int64_t number = 0;
  const auto [end, error] =
      std::from_chars(digits->data(), digits->data() + digits->size(), number);
  if (error == std::errc{} && end == digits->data() + digits->size() && number >= lowest &&
      number <= highest) {
    return number;
  }
  refuse("The parameter " + std::string(name) + " must be a whole number from " +
         std::to_string(lowest) + " to " + std::to_string(highest) + ".");
  return std::nullopt;
}

std::vector<std::string> query_reader::many(std::string_view name, std::size_t most) {
  known_.emplace_back(name);
  std::vector<std::string> out;
  for (const auto& [key, value] : parameters_) {
    if (key == name) out.push_back(value);
  }
  if (out.size() > most) {
    refuse("The parameter " + std::string(name) + " may stand " + std::to_string(most) +
           " times at most.");
  }
  return out;
}

void query_reader::refuse(std::string sentence) {
  if (!fault_) fault_ = input_fault{protocol::reason::invalid_frame, std::move(sentence)};
}

std::optional<input_fault> query_reader::fault() {
  for (const auto& [key, value] : parameters_) {
    if (std::ranges::find(known_, key) != known_.end()) continue;
    const std::string nearest = nearest_word(key, known_);
    refuse("There is no parameter \"" + config_text::printable(key, 64) + "\" here" +
           (nearest.empty() ? "." : "; did you mean " + nearest + "?"));
  }
  return fault_;
}

}  // namespace leasehold::server
