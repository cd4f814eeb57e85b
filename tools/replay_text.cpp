#include "tools/replay_text.hpp"

#include <algorithm>
#include <array>
#include <boost/json/serialize.hpp>
#include <charconv>

namespace leasehold::tools {
namespace {

bool is_plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return c >= ' ' && c != '"' && c != '\\' && c != '\x7f'; });
}

void append_text(std::string& out, std::string_view text) {
  if (!is_plain(text)) {
    out += boost::json::serialize(boost::json::string_view{text.data(), text.size()});
    return;
  }
  out += '"';
  out += text;
  out += '"';
}

void append_number(std::string& out, std::int64_t number) {
  std::array<char, 24> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  out.append(digits.data(), end);
}

void append(std::string& out, const protocol::cell& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return append_number(out, *number);
  if (const auto* truth = std::get_if<bool>(&value)) {
    out += *truth ? "true" : "false";
    return;
  }
  append_text(out, std::get<std::string>(value));
}

}  // namespace

void line_writer::put_name(std::string_view name) {
  if (out_.back() != '{') out_ += ',';
  append_text(out_, name);
  out_ += ':';
}

void line_writer::put(std::string_view name, const protocol::cell& value) {
  put_name(name);
  append(out_, value);
}

void line_writer::put_json(std::string_view name, std::string_view json) {
  put_name(name);
  out_ += json;
}

void line_writer::end(bool end_line) {
  out_ += '}';
  if (end_line) out_ += '\n';
}

std::string json_text(const protocol::cell& value) {
  std::string text;
  append(text, value);
  return text;
}

}  // namespace leasehold::tools
