// docs/openapi.json against the program that serves it: the routing table, the words of the
// protocol, and the shape of what is answered.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "leasehold/actors/lock_limits.hpp"
#include "leasehold/protocol/evidence.hpp"
#include "src/http_answer.hpp"
#include "support/api_rig.hpp"
#include "support/json_schema.hpp"

namespace leasehold::server {
namespace {

namespace json = boost::json;
using tests::api_rig;
using tests::json_schema;
using words = std::vector<std::string>;

std::string text_of_file() {
  std::ifstream in(std::filesystem::path(LEASEHOLD_SOURCE_DIR) / "docs/openapi.json");
  return {std::istreambuf_iterator<char>(in), {}};
}

words texts(const json::value& list) {
  words out;
  for (const auto& each : list.as_array()) out.emplace_back(each.as_string());
  return out;
}

/// The document as it is served, and what the tests ask of it.
class openapi : public testing::Test {
 protected:
  openapi() : document(json::parse(served())), schema(document) {}

  static std::string served() {
    api_rig rig;
    const auto said = rig.ask("GET", "/v1/openapi.json", "");
    EXPECT_EQ(said.status, 200);
    EXPECT_EQ(api_rig::header(said, "Content-Type"), "application/json");
    return said.body;
  }
  const json::value& at(const std::string& pointer) const {
    return *document.find_pointer(pointer, failed_);
  }
  const json::value& named(const std::string& name) const {
    return at("/components/schemas/" + name);
  }
  /// Calls `each` with the method, the path and the operation of every operation.
  template <class Each>
  void each_operation(Each each) const {
    for (const auto& [path, methods] : at("/paths").as_object()) {
      for (const auto& [method, operation] : methods.as_object()) {
        std::string upper(method);
        std::ranges::transform(upper, upper.begin(),
                               [](char c) { return static_cast<char>(std::toupper(c)); });
        each(upper, std::string(path), operation.as_object());
      }
    }
  }
  /// Itself, or what its `$ref` names.
  const json::object& followed(const json::value& v) const {
    const auto* reference = v.as_object().if_contains("$ref");
    if (reference == nullptr) return v.as_object();
    const auto* target = schema.resolve(reference->as_string());
    EXPECT_NE(target, nullptr) << json::serialize(v);
    return target == nullptr ? v.as_object() : target->as_object();
  }

  json::value document;
  json_schema schema;

 private:
  mutable boost::system::error_code failed_;
};

/// Calls `each` with every string that stands under the name `key` anywhere.
void each_named(const json::value& in, std::string_view key,
                const std::function<void(const std::string&)>& each) {
  if (in.is_array()) {
    for (const auto& v : in.as_array()) each_named(v, key, each);
  } else if (in.is_object()) {
    for (const auto& [name, v] : in.as_object()) {
      if (name == key && v.is_string()) each(std::string(v.as_string()));
      each_named(v, key, each);
    }
  }
}

TEST_F(openapi, IsTheDocumentOfTheDocs) {
  EXPECT_EQ(served(), text_of_file());
  EXPECT_EQ(at("/openapi"), "3.1.0");
}

TEST_F(openapi, HasEveryRouteAndNothingElse) {
  std::set<std::pair<std::string, std::string>> described;
  each_operation([&](const std::string& method, const std::string& path, const json::object&) {
    described.emplace(method, path);
  });
  std::set<std::pair<std::string, std::string>> served_routes;
  for (const route& r : routes()) served_routes.emplace(r.method, r.pattern);
  EXPECT_EQ(described, served_routes);
}

TEST_F(openapi, NamesTheRolesThatARouteLetsIn) {
  each_operation([&](const std::string& method, const std::string& path, const json::object& o) {
    const auto r = std::ranges::find_if(
        routes(), [&](const route& each) { return each.method == method && each.pattern == path; });
    ASSERT_NE(r, routes().end()) << path;
    std::multiset<std::string> wanted;
    for (const auto& [lets, role] : {std::pair{r->who.worker, "worker"},
                                     {r->who.client, "client"},
                                     {r->who.operator_, "operator"},
                                     {r->who.auditor, "auditor"}}) {
      if (!lets) continue;
      wanted.insert(std::string("bearer ") + role);
      wanted.insert(std::string("certificate ") + role);
    }
    std::multiset<std::string> described;
    for (const auto& one : o.at("security").as_array()) {
      ASSERT_EQ(one.as_object().size(), 1U) << path;
      const auto& [scheme, roles] = *one.as_object().begin();
      ASSERT_EQ(roles.as_array().size(), 1U) << path;
      described.insert(std::string(scheme) + " " + texts(roles).at(0));
    }
    EXPECT_EQ(described, wanted) << method << " " << path;
  });
}

TEST_F(openapi, EachReferenceLeadsSomewhereAndEachPartIsUsed) {
  std::set<std::string> used;
  each_named(document, "$ref", [&](const std::string& reference) {
    EXPECT_NE(schema.resolve(reference), nullptr) << reference;
    used.insert(reference);
  });
  for (const char* kind : {"parameters", "responses", "schemas"}) {
    for (const auto& part : at(std::string("/components/") + kind).as_object()) {
      const auto reference = std::string("#/components/") + kind + "/" + std::string(part.key());
      EXPECT_TRUE(used.contains(reference)) << reference;
    }
  }
}

TEST_F(openapi, EachOperationHasAnIdOfItsOwnAndItsPathsParameters) {
  std::set<std::string> ids;
  each_operation([&](const std::string& method, const std::string& path, const json::object& o) {
    EXPECT_TRUE(ids.insert(std::string(o.at("operationId").as_string())).second) << path;
    EXPECT_FALSE(o.at("summary").as_string().empty()) << path;
    EXPECT_EQ(o.contains("requestBody"), method == "POST") << path;
    bool has_id = false;
    for (const auto& each :
         o.contains("parameters") ? o.at("parameters").as_array() : json::array{}) {
      const auto& parameter = followed(each);
      if (parameter.at("in") != "path") continue;
      has_id = true;
      EXPECT_EQ(parameter.at("name"), "id");
      EXPECT_EQ(parameter.at("required"), true);
    }
    EXPECT_EQ(has_id, path.find("{id}") != std::string::npos) << path;
  });
}

TEST_F(openapi, EachReasonIsOneOfTheListAndHasItsStatus) {
  words all;
  for (const auto& entry : protocol::all_reasons()) all.emplace_back(entry.word);
  EXPECT_EQ(texts(named("Reason").at("enum")), all);
  each_operation([&](const std::string& method, const std::string& path, const json::object& o) {
    std::set<std::string> statuses;
    for (const auto& word : texts(o.at("x-reasons"))) {
      const auto known = protocol::reason_from_word(word);
      ASSERT_TRUE(known) << word << " of " << path;
      statuses.insert(std::to_string(protocol::find_reason(*known)->http_status));
    }
    for (const auto& response : o.at("responses").as_object()) {
      const std::string status(response.key());
      if (status < "400") continue;
      EXPECT_EQ(statuses.erase(status), 1U) << method << " " << path << ": " << status;
      const auto& shape = followed(response.value());
      EXPECT_EQ(shape.at("content").at("application/problem+json").at("schema").at("$ref"),
                "#/components/schemas/Problem");
      const bool said =
          shape.contains("headers") && shape.at("headers").as_object().contains("Retry-After");
      bool wanted = false;
      for (const auto& entry : protocol::all_reasons()) {
        if (std::to_string(entry.http_status) != status) continue;
        using protocol::reason_class;
        wanted |= entry.refusal_class == reason_class::retryable ||
                  entry.refusal_class == reason_class::unknown_outcome;
      }
      EXPECT_EQ(said, wanted) << path << ": " << status;
    }
    EXPECT_TRUE(statuses.empty()) << method << " " << path << ": " << *statuses.begin();
  });
}

TEST_F(openapi, ARefusalHasTheShapeOfAProblemWhateverItsReason) {
  api_rig rig;
  auto& job = rig.gateway.add_job("t", "j");
  for (const auto& entry : protocol::all_reasons()) {
    if (entry.http_status < 400) continue;  // no refusal has it
    rig.gateway.answer_with =
        actors::answer{protocol::decision::rejected, entry.code, job, {2500}, false, {}};
    const auto said = rig.ask("POST", "/v1/jobs/j:cancel", "client", "{}");
    const auto wrong = schema.complaints(named("Problem"), api_rig::json(said));
    EXPECT_TRUE(wrong.empty()) << entry.word << ": " << wrong.front();
  }
}

TEST_F(openapi, ARefusalBeforeTheApiHasTheShapeOfAProblemToo) {
  for (const int status : {400, 408, 413, 426, 429, 431, 503}) {
    const auto said = refusal(status, "Why, in one sentence.");
    const auto body = api_rig::json(said);
    const auto wrong = schema.complaints(named("Problem"), body);
    EXPECT_TRUE(wrong.empty()) << status << ": " << wrong.front();
    const bool retry = body.at("class") == "retryable";
    EXPECT_EQ(retry, status == 408 || status == 429 || status == 503) << status;
    EXPECT_EQ(api_rig::header(said, "retry-after"), retry ? "1" : "") << status;
    const auto* ms = body.if_contains("retry_after_ms");
    EXPECT_EQ(ms == nullptr ? 0 : ms->as_int64(), retry ? 1000 : 0) << status;
  }
}

TEST_F(openapi, AnAcquireIsTakenWhereItFitsTheSchemaAndElseRefused) {
  const auto& shape = named("AcquireRequest");
  const auto& fields = shape.at("properties");
  EXPECT_EQ(fields.at("lock_delay_ms").at("maximum"), actors::longest_lock_delay.ms);
  const auto* term = protocol::find_policy_key("lease_duration_ms");
  EXPECT_EQ(fields.at("ttl_ms").at("minimum"), term->lowest);
  EXPECT_EQ(fields.at("ttl_ms").at("maximum"), term->highest);
  const std::vector<std::pair<const char*, json::value>> cases{
      {"trace_id", ""},
      {"trace_id", "00"},
      {"request_id", ""},
      {"execution_id", ""},
      {"workflow", ""},
      {"instance", ""},
      {"metadata", json::object{{"", "x"}}},
      {"metadata", json::object{{"x", ""}}},
      {"metadata", json::object{{"x", 1}}},
      {"metadata", json::object{}},
      {"ttl_ms", 0},
      {"ttl_ms", 1},
      {"ttl_ms", 2'592'000'001},
      {"ttl_ms", 1000.0},
      {"lock_delay_ms", 3'600'000},
      {"lock_delay_ms", 3'600'001},
      {"wait_ms", -1},
  };
  for (const auto& [name, value] : cases) {
    json::object body{{"program", "p"}, {"target", {{"opaque", "x"}}}, {name, value}};
    api_rig rig;
    const auto said = rig.ask("POST", "/v1/locks:acquire", "client", json::serialize(body));
    EXPECT_EQ(said.status < 300, schema.complaints(shape, body).empty())
        << json::serialize(body) << " " << said.body;
  }
}

TEST_F(openapi, WordsAndPolicyKeysAreThoseOfTheProtocol) {
  for (const char* name : {"LeaseState", "LockState"}) {
    for (const auto& word : texts(named(name).at("enum"))) {
      EXPECT_TRUE(protocol::lease_state_from_word(word)) << word;
    }
  }
  EXPECT_EQ(named("LeaseState").at("enum").as_array().size(),
            static_cast<std::size_t>(protocol::lease_state::cancelled));
  for (const auto& word : texts(named("Target").at("properties").at("kind").at("enum"))) {
    EXPECT_TRUE(protocol::target_kind_from_word(word)) << word;
    EXPECT_TRUE(named("TargetTyped").at("properties").as_object().contains(word)) << word;
  }
  words described;
  for (const auto& key : named("Policy").at("properties").as_object()) {
    described.emplace_back(key.key());
    const auto* known = protocol::find_policy_key(key.key());
    ASSERT_NE(known, nullptr) << key.key();
    const auto& how = key.value().as_object();
    if (known->words.empty()) {
      EXPECT_EQ(how.at("minimum"), known->lowest) << key.key();
      EXPECT_EQ(how.at("maximum"), known->highest) << key.key();
      continue;
    }
    std::string choices;
    for (const auto& word : texts(how.at("enum"))) choices += (choices.empty() ? "" : "|") + word;
    EXPECT_EQ(choices, known->words);
  }
  words known_keys;
  for (const auto& key : protocol::policy_keys()) known_keys.emplace_back(key.name);
  EXPECT_EQ(described, known_keys);
}

TEST_F(openapi, ARowOfTheEvidenceIsAsDescribed) {
  const json::value line = json::parse([] {
    std::string out;
    append_json_line(out, shown_row{});
    return out;
  }());
  words columns;
  for (const auto& column : line.as_object()) columns.emplace_back(column.key());
  words described;
  for (const auto& column : named("EvidenceLine").at("properties").as_object()) {
    described.emplace_back(column.key());
  }
  EXPECT_EQ(described, columns);
}

TEST_F(openapi, ExamplesAreTakenAndHaveTheShapeThatTheySay) {
  int examples = 0;
  each_operation([&](const std::string& method, const std::string& path, const json::object& o) {
    if (!o.contains("requestBody")) return;
    const auto& content = o.at("requestBody").at("content").at("application/json").as_object();
    if (!content.contains("example")) return;
    ++examples;
    const auto wrong = schema.complaints(content.at("schema"), content.at("example"));
    EXPECT_TRUE(wrong.empty()) << path << ": " << wrong.front();
    api_rig rig;
    std::string target = path;
    if (const auto id = target.find("{id}"); id != std::string::npos) target.replace(id, 4, "j");
    for (const char* role : {"client", "operator"}) {
      // What nobody holds is unknown; the body itself must be understood.
      const auto said = rig.ask(method, target, role, json::serialize(content.at("example")));
      EXPECT_NE(said.status, 400) << said.body;
    }
  });
  EXPECT_GE(examples, 5);
}

/// A value that a schema lets pass, for a field or a parameter.
json::value something_for(const json_schema& all, const json::object& schema) {
  if (schema.contains("$ref")) {
    return something_for(all, all.resolve(schema.at("$ref").as_string())->as_object());
  }
  if (schema.contains("const")) return schema.at("const");
  if (schema.contains("enum")) return schema.at("enum").as_array().front();
  const auto& type = schema.at("type").as_string();
  if (type == "integer") return std::max<std::int64_t>(1, schema.at("minimum").as_int64());
  if (type == "boolean") return true;
  if (type == "object") return json::object{};
  if (type == "array") return "a=b";
  if (!schema.contains("pattern")) return "host:example.com";
  for (const char* text : {"a", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}) {
    if (all.complaints(schema, text).empty()) return text;
  }
  return json::string("k:" + std::string(64, 'a'));
}

/// The example of an operation, else what its body must have.
json::object smallest_body(const json::object& operation, const json::object& shape) {
  const auto& content = operation.at("requestBody").at("content").at("application/json");
  if (const auto* example = content.as_object().if_contains("example")) return example->as_object();
  json::object out;
  if (!shape.contains("required")) return out;
  for (const auto& name : texts(shape.at("required"))) {
    out[name] = shape.at("properties").at(name).at("enum").as_array().front();
  }
  return out;
}

TEST_F(openapi, EveryFieldAndParameterThatIsDescribedIsKnownToItsRoute) {
  api_rig rig;
  rig.gateway.add_job("t", "j");
  const auto ask = [&](const std::string& method, std::string path, const json::object& o,
                       const std::string& query, const std::string& body) {
    if (const auto id = path.find("{id}"); id != std::string::npos) path.replace(id, 4, "j");
    if (!query.empty()) path += "?" + query;
    const auto& security = o.at("security").as_array();
    const std::string role =
        security.empty() ? "" : texts(security.at(0).as_object().begin()->value()).at(0);
    auto request = api_rig::request(method, path, role, body);
    if (!o.at("responses").as_object().contains("101")) return rig.ask(std::move(request));
    request.headers.emplace_back("sec-websocket-protocol", "leasehold.v1.json");
    const auto answer = rig.http->upgrade(request);
    const auto* refused = std::get_if<upgrade_refused>(&answer);
    return refused != nullptr ? refused->response : http_response{101, {}, ""};
  };
  each_operation([&](const std::string& method, const std::string& path, const json::object& o) {
    if (path == "/metrics" || path == "/healthz" || path == "/readyz") return;
    const std::string enough = path.starts_with("/v1/fences") ? "token=1&" : "";
    const auto no_parameter = ask(method, path, o, enough + "nosuch=1", "");
    EXPECT_NE(no_parameter.body.find("no parameter"), std::string::npos) << path;
    for (const auto& each :
         o.contains("parameters") ? o.at("parameters").as_array() : json::array{}) {
      const auto& parameter = followed(each);
      if (parameter.at("in") != "query") continue;
      const auto value = something_for(schema, parameter.at("schema").as_object());
      std::string query(parameter.at("name").as_string());
      if (!parameter.contains("allowEmptyValue")) {
        query +=
            "=" + (value.is_string() ? std::string(value.as_string()) : json::serialize(value));
      }
      const auto said = ask(method, path, o, query, "");
      EXPECT_EQ(said.body.find("no parameter"), std::string::npos) << path << ": " << said.body;
    }
    if (!o.contains("requestBody")) return;
    const auto& shape =
        followed(o.at("requestBody").at("content").at("application/json").at("schema"));
    const json::object enough_fields = smallest_body(o, shape);
    const auto with = [&](const std::string& name, const json::value& value) {
      auto body = enough_fields;
      if (name == "lease_id") body.erase("key");
      body[name] = value;
      return ask(method, path, o, "", json::serialize(body)).body.find("no field");
    };
    for (const auto& [name, how] : shape.at("properties").as_object()) {
      EXPECT_EQ(with(std::string(name), something_for(schema, how.as_object())), std::string::npos)
          << path << ": " << name;
    }
    EXPECT_NE(with("nosuch", 1), std::string::npos) << path;
  });
}

}  // namespace
}  // namespace leasehold::server
