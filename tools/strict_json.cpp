#include "tools/strict_json.hpp"

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <unordered_set>
#include <vector>

namespace leasehold::tools {
namespace {

constexpr std::size_t deepest = 16;

/// Looks for a key that stands twice in one object; the parser that builds values keeps the last
/// one and says nothing.
class key_watch {
 public:
  constexpr static std::size_t max_object_size = std::size_t(-1);
  constexpr static std::size_t max_array_size = std::size_t(-1);
  constexpr static std::size_t max_key_size = std::size_t(-1);
  constexpr static std::size_t max_string_size = std::size_t(-1);

  using code = boost::json::error_code;
  using text = boost::json::string_view;

  bool on_document_begin(code&) { return true; }
  bool on_document_end(code&) { return true; }
  bool on_object_begin(code&) {
    open_.emplace_back();
    return true;
  }
  bool on_object_end(std::size_t, code&) {
    open_.pop_back();
    return true;
  }
  bool on_array_begin(code&) { return true; }
  bool on_array_end(std::size_t, code&) { return true; }
  bool on_key_part(text part, std::size_t, code&) {
    key_.append(part);
    return true;
  }
  bool on_key(text part, std::size_t, code& failed) {
    key_.append(part);
    if (!open_.back().insert(key_).second) {
      failed = boost::json::error::exception;
      return false;
    }
    key_.clear();
    return true;
  }
  bool on_string_part(text, std::size_t, code&) { return true; }
  bool on_string(text, std::size_t, code&) { return true; }
  bool on_number_part(text, code&) { return true; }
  bool on_int64(std::int64_t, text, code&) { return true; }
  bool on_uint64(std::uint64_t, text, code&) { return true; }
  bool on_double(double, text, code&) { return true; }
  bool on_bool(bool, code&) { return true; }
  bool on_null(code&) { return true; }
  bool on_comment_part(text, code&) { return true; }
  bool on_comment(text, code&) { return true; }

  [[nodiscard]] const std::string& key() const noexcept { return key_; }

 private:
  std::vector<std::unordered_set<std::string>> open_;
  std::string key_;
};

std::string line_of(std::string_view text, std::size_t offset) {
  const auto before = text.substr(0, std::min(offset, text.size()));
  return "line " + std::to_string(1 + std::count(before.begin(), before.end(), '\n'));
}

}  // namespace

std::variant<boost::json::value, malformed_text> parse_strictly(std::string_view text) {
  boost::json::parse_options options;
  options.max_depth = deepest;
  boost::json::basic_parser<key_watch> watch(options);
  boost::json::error_code failed;
  const auto read = watch.write_some(false, text.data(), text.size(), failed);
  if (failed == boost::json::error::exception) {
    return malformed_text{"the key " +
                          boost::json::serialize(boost::json::string(watch.handler().key())) +
                          " stands twice in one object (" + line_of(text, read) + ")"};
  }
  if (!failed && read != text.size()) failed = boost::json::error::extra_data;
  if (failed)
    return malformed_text{"not JSON: " + failed.message() + " (" + line_of(text, read) + ")"};
  auto value = boost::json::parse({text.data(), text.size()}, failed, {}, options);
  if (failed) return malformed_text{"not JSON: " + failed.message()};
  return value;
}

}  // namespace leasehold::tools
