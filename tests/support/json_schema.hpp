// Whether JSON has the shape that a schema of an OpenAPI document says: the keywords that
// docs/openapi.json uses, and a complaint about any other.
#pragma once

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <cstdint>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::tests {

class json_schema {
 public:
  /// `document`: where `$ref` points into.
  explicit json_schema(const boost::json::value& document) : document_(document) {}

  /// What is wrong with the value, each with its place; empty: nothing.
  std::vector<std::string> complaints(const boost::json::value& schema,
                                      const boost::json::value& what) const {
    std::vector<std::string> out;
    check(schema.as_object(), what, "", out);
    return out;
  }

  /// The target of a `$ref`; null where there is none.
  const boost::json::value* resolve(std::string_view reference) const {
    if (!reference.starts_with("#/")) return nullptr;
    boost::system::error_code failed;
    return document_.find_pointer(reference.substr(1), failed);
  }

 private:
  using object = boost::json::object;
  using value = boost::json::value;
  using texts = std::vector<std::string>;

  void check(const object& schema, const value& v, const std::string& at, texts& out) const {
    for (const auto& [keyword, wanted] : schema) check_keyword(keyword, wanted, v, at, schema, out);
  }

  void check_keyword(std::string_view keyword, const value& wanted, const value& v,
                     const std::string& at, const object& schema, texts& out) const {
    if (keyword == "description") return;
    const auto wrong = [&](const std::string& how) {
      out.push_back((at.empty() ? "the whole" : at) + " " + how + ": " +
                    boost::json::serialize(v).substr(0, 200));
    };
    if (keyword == "$ref") {
      const auto* target = resolve(wanted.as_string());
      if (target == nullptr) return wrong("has a $ref that leads nowhere");
      check(target->as_object(), v, at, out);
    } else if (keyword == "type") {
      if (!has_type(v, wanted)) wrong("is no " + boost::json::serialize(wanted));
    } else if (keyword == "enum") {
      if (std::ranges::find(wanted.as_array(), v) == wanted.as_array().end()) {
        wrong("is none of the words");
      }
    } else if (keyword == "const") {
      if (v != wanted) wrong("is not " + boost::json::serialize(wanted));
    } else if (keyword == "oneOf") {
      const auto fits = std::ranges::count_if(
          wanted.as_array(), [&](const value& each) { return complaints(each, v).empty(); });
      if (fits != 1) wrong("fits " + std::to_string(fits) + " of the choices");
    } else if (v.is_string()) {
      check_text(keyword, wanted, v.as_string(), wrong);
    } else if (v.is_int64()) {
      check_number(keyword, wanted, v.as_int64(), wrong);
    } else if (v.is_object()) {
      check_object(keyword, wanted, v.as_object(), at, schema, wrong, out);
    } else if (v.is_array() && keyword == "items") {
      for (std::size_t i = 0; i < v.as_array().size(); ++i) {
        check(wanted.as_object(), v.as_array()[i], at + "/" + std::to_string(i), out);
      }
    } else if (!is_known(keyword)) {
      wrong("is to be judged by \"" + std::string(keyword) + "\", which nobody knows");
    }
  }

  template <class Wrong>
  static void check_text(std::string_view keyword, const value& wanted, const std::string& text,
                         const Wrong& wrong) {
    if (keyword == "pattern") {
      // A letter of a pattern is a byte here; the patterns are about ASCII.
      const std::regex pattern(std::string(wanted.as_string()));
      if (!std::regex_search(text, pattern)) wrong("has not the form");
    } else if (keyword == "minLength") {
      if (static_cast<std::int64_t>(text.size()) < wanted.as_int64()) wrong("is too short");
    } else if (keyword == "maxLength") {
      if (static_cast<std::int64_t>(text.size()) > wanted.as_int64()) wrong("is too long");
    } else if (!is_known(keyword)) {
      wrong("is to be judged by \"" + std::string(keyword) + "\", which nobody knows");
    }
  }
  template <class Wrong>
  static void check_text(std::string_view keyword, const value& wanted,
                         const boost::json::string& text, const Wrong& wrong) {
    check_text(keyword, wanted, std::string(text), wrong);
  }

  template <class Wrong>
  static void check_number(std::string_view keyword, const value& wanted, std::int64_t number,
                           const Wrong& wrong) {
    if (keyword == "minimum") {
      if (number < wanted.as_int64()) wrong("is too low");
    } else if (keyword == "maximum") {
      if (number > wanted.as_int64()) wrong("is too high");
    } else if (!is_known(keyword)) {
      wrong("is to be judged by \"" + std::string(keyword) + "\", which nobody knows");
    }
  }

  template <class Wrong>
  void check_object(std::string_view keyword, const value& wanted, const object& v,
                    const std::string& at, const object& schema, const Wrong& wrong,
                    texts& out) const {
    if (keyword == "properties") {
      for (const auto& [name, each] : wanted.as_object()) {
        const auto* there = v.if_contains(name);
        if (there != nullptr) check(each.as_object(), *there, at + "/" + std::string(name), out);
      }
    } else if (keyword == "required") {
      for (const value& name : wanted.as_array()) {
        if (!v.contains(name.as_string())) wrong("lacks " + std::string(name.as_string()));
      }
    } else if (keyword == "additionalProperties") {
      check_others(wanted, v, at, schema, wrong, out);
    } else if (keyword == "propertyNames") {
      for (const auto& each : v) {
        check(wanted.as_object(), each.key(), at + "/" + std::string(each.key()), out);
      }
    } else if (keyword == "minProperties") {
      if (static_cast<std::int64_t>(v.size()) < wanted.as_int64()) wrong("has too few members");
    } else if (keyword == "maxProperties") {
      if (static_cast<std::int64_t>(v.size()) > wanted.as_int64()) wrong("has too many members");
    } else if (!is_known(keyword)) {
      wrong("is to be judged by \"" + std::string(keyword) + "\", which nobody knows");
    }
  }

  template <class Wrong>
  void check_others(const value& wanted, const object& v, const std::string& at,
                    const object& schema, const Wrong& wrong, texts& out) const {
    const auto* named = schema.if_contains("properties");
    for (const auto& [name, each] : v) {
      if (named != nullptr && named->as_object().contains(name)) continue;
      if (wanted.is_object()) {
        check(wanted.as_object(), each, at + "/" + std::string(name), out);
      } else if (!wanted.as_bool()) {
        wrong("has a member that is not described, " + std::string(name));
      }
    }
  }

  static bool has_type(const value& v, const value& wanted) {
    if (wanted.is_array()) {
      return std::ranges::any_of(wanted.as_array(),
                                 [&](const value& each) { return has_type(v, each); });
    }
    const auto& name = wanted.as_string();
    return (name == "object" && v.is_object()) || (name == "array" && v.is_array()) ||
           (name == "string" && v.is_string()) || (name == "boolean" && v.is_bool()) ||
           (name == "null" && v.is_null()) || (name == "integer" && v.is_int64());
  }

  /// Keywords that say nothing of a value of another type.
  static bool is_known(std::string_view keyword) {
    constexpr std::array known{"pattern",      "minLength",     "maxLength",
                               "minimum",      "maximum",       "properties",
                               "required",     "items",         "additionalProperties",
                               "maxItems",     "minProperties", "maxProperties",
                               "propertyNames"};
    return std::ranges::find(known, keyword) != known.end();
  }

  const boost::json::value& document_;
};

}  // namespace leasehold::tests
