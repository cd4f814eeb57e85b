#include "src/http_api_body.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <set>

#include "leasehold/protocol/units.hpp"
#include "src/config_text.hpp"
#include "src/config_units.hpp"

namespace leasehold::server {
namespace {

namespace json = boost::json;

/// Hears the body before it is built and finds what Boost.JSON lets pass: repeated fields and
/// numbers that a reader of doubles would change.
class strict_ear {
 public:
  static constexpr std::size_t max_array_size = std::size_t(-1);
  static constexpr std::size_t max_object_size = std::size_t(-1);
  static constexpr std::size_t max_string_size = std::size_t(-1);
  static constexpr std::size_t max_key_size = std::size_t(-1);
  using error_code = json::error_code;
  using view = json::string_view;

  std::string complaint;

  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }
  bool on_array_begin(error_code&) { return true; }
  bool on_array_end(std::size_t, error_code&) { return true; }
  bool on_object_begin(error_code&) {
    keys_.emplace_back();
    return true;
  }
  bool on_object_end(std::size_t, error_code&) {
    keys_.pop_back();
    return true;
  }
  bool on_string_part(view, std::size_t, error_code&) { return true; }
  bool on_string(view, std::size_t, error_code&) { return true; }
  bool on_key_part(view part, std::size_t, error_code&) {
    key_.append(part.data(), part.size());
    return true;
  }
  bool on_key(view part, std::size_t, error_code& failed) {
    key_.append(part.data(), part.size());
    const std::string key = std::exchange(key_, {});
    if (keys_.back().insert(key).second) return true;
    return stop("The field \"" + config_text::printable(key) + "\" stands twice.", failed);
  }
  bool on_number_part(view, error_code&) { return true; }
  bool on_int64(std::int64_t value, view, error_code& failed) {
    if (value >= -protocol::max_number && value <= protocol::max_number) return true;
    return stop_at_number(failed);
  }
  bool on_uint64(std::uint64_t, view, error_code& failed) { return stop_at_number(failed); }
  bool on_double(double value, view, error_code& failed) {
    const auto edge = static_cast<double>(protocol::max_number);
    if (value >= -edge && value <= edge) return true;
    return stop_at_number(failed);
  }
  bool on_bool(bool, error_code&) { return true; }
  bool on_null(error_code&) { return true; }
  bool on_comment_part(view, error_code&) { return true; }
  bool on_comment(view, error_code&) { return true; }

 private:
  bool stop(std::string sentence, error_code& failed) {
    complaint = std::move(sentence);
    failed = json::error::extra_data;  // any error ends the parser; the sentence says which
    return false;
  }
  bool stop_at_number(error_code& failed) {
    return stop("A number lies beyond 2^53 - 1 and would not be kept exactly.", failed);
  }

  std::vector<std::set<std::string>> keys_;
  std::string key_;
};

json::parse_options strict_options() {
  json::parse_options how;
  how.max_depth = deepest_body;
  return how;
}

std::optional<input_fault> find_json_fault(std::string_view body) {
  json::basic_parser<strict_ear> parser(strict_options());
  json::error_code failed;
  const std::size_t used = parser.write_some(false, body.data(), body.size(), failed);
  const std::string& complaint = parser.handler().complaint;
  if (!complaint.empty()) return input_fault{protocol::reason::malformed, complaint};
  if (failed) {
    return input_fault{
        protocol::reason::malformed,
        "The body is no JSON at byte " + std::to_string(used) + ": " + failed.message() + "."};
  }
  if (body.substr(used).find_first_not_of(" \t\r\n") != std::string_view::npos) {
    return input_fault{protocol::reason::malformed, "Something stands after the JSON object."};
  }
  return std::nullopt;
}

}  // namespace

std::variant<json::object, input_fault> parse_body(std::string_view body) {
  if (body.size() > largest_body) {
    return input_fault{protocol::reason::too_large, "A body has at most 1 MiB."};
  }
  if (body.empty()) return json::object{};
  if (auto fault = find_json_fault(body)) return *fault;
  json::error_code failed;
  json::value all = json::parse(body, failed, {}, strict_options());
  if (failed || !all.is_object()) {
    return input_fault{protocol::reason::malformed, "The body must be one JSON object."};
  }
  return std::move(all.get_object());
}

const json::value* field_reader::take(std::string_view name) {
  known_.push_back(name);
  return from_.if_contains(name);
}

std::optional<std::string> field_reader::text(std::string_view name, std::size_t most_bytes) {
  const json::value* value = take(name);
  if (value == nullptr) return std::nullopt;
  const json::string* text = value->if_string();
  if (text != nullptr && text->size() <= most_bytes) return std::string(text->data(), text->size());
  refuse(std::string(name) + " must be a text of at most " + std::to_string(most_bytes) +
         " bytes.");
  return std::nullopt;
}

std::optional<std::int64_t> field_reader::number(std::string_view name, std::int64_t lowest,
                                                 std::int64_t highest,
                                                 protocol::reason out_of_range) {
  const json::value* value = take(name);
  if (value == nullptr) return std::nullopt;
  const std::int64_t* number = value->if_int64();
  if (number != nullptr && *number >= lowest && *number <= highest) return *number;
  refuse(std::string(name) + " must be a whole number from " + std::to_string(lowest) + " to " +
             std::to_string(highest) + ".",
         number != nullptr ? out_of_range : protocol::reason::invalid_frame);
  return std::nullopt;
}

std::optional<bool> field_reader::toggle(std::string_view name) {
  const json::value* value = take(name);
  if (value == nullptr) return std::nullopt;
  if (const bool* chosen = value->if_bool()) return *chosen;
  refuse(std::string(name) + " must be true or false.");
  return std::nullopt;
}

const json::object* field_reader::object(std::string_view name) {
  const json::value* value = take(name);
  if (value == nullptr) return nullptr;
  const json::object* inner = value->if_object();
  if (inner == nullptr) refuse(std::string(name) + " must be an object.");
  return inner;
}

void field_reader::refuse(std::string sentence, protocol::reason why) {
  if (!fault_) fault_ = input_fault{why, std::move(sentence)};
}

std::optional<input_fault> field_reader::fault() {
  for (const auto& field : from_) {
    if (std::ranges::find(known_, std::string_view(field.key())) != known_.end()) continue;
    const std::string nearest = nearest_word(field.key(), known_);
    refuse("There is no field \"" + config_text::printable(field.key(), 64) + "\"" +
           (nearest.empty() ? "." : "; did you mean " + nearest + "?"));
  }
  return fault_;
}

bool is_id(std::string_view text) noexcept {
  return !text.empty() && text.size() <= 128 && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == ':' || c == '-';
  });
}

std::string to_base64(std::string_view bytes) {
  std::string out(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  const int written = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                      reinterpret_cast<const unsigned char*>(bytes.data()),
                                      static_cast<int>(bytes.size()));
  out.resize(static_cast<std::size_t>(written));
  return out;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  if (text.empty()) return std::string();
  std::string out(text.size() / 4 * 3, '\0');
  const int read = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                   reinterpret_cast<const unsigned char*>(text.data()),
                                   static_cast<int>(text.size()));
  if (read < 0) return std::nullopt;
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  out.resize(static_cast<std::size_t>(read) - padding);
  // Only the canonical spelling is taken: OpenSSL also reads white space and stray bits.
  if (to_base64(out) != text) return std::nullopt;
  return out;
}

}  // namespace leasehold::server
