// Who may do what over HTTP: every principal and every route, in one table that is walked.
#include <gtest/gtest.h>

#include <array>
#include <set>

#include "src/keys/normalise.hpp"
#include "support/api_rig.hpp"
#include "support/json_schema.hpp"

namespace leasehold::server {
namespace {

namespace json = boost::json;
using actors::role;
using tests::api_rig;

// The things of the tenant "t": jobs of the queue "q", a lock of the program "p".
constexpr const char* lock_text = "t/p/host:example.com//";
const std::string lock_path = "t%2Fp%2Fhost:example.com%2F%2F";
const std::string acquire_body = R"({"program":"p","target":{"host":"example.com"}})";
const std::string renew_body =
    R"({"key":"t/p/host:example.com//","holder":"ME/default","generation":1,"sequence":1})";
const std::string release_body =
    R"({"key":"t/p/host:example.com//","holder":"ME/default","generation":1})";
const std::string revoke_body = R"({"key":"t/p/host:example.com//"})";

/// One route, asked about a thing of the tenant "t". What is expected is written as a status, with
/// the reason where it refuses.
struct table_row {
  const char* method;
  std::string path;
  std::string body;  ///< ME stands for the principal's name
  std::set<std::string> roles;
  const char* ok;        ///< to whoever has one of the roles and every grant
  const char* stranger;  ///< to one of the roles in another tenant
  const char* narrow;    ///< to one of the roles who may use another queue and program only
  bool upgrade = false;
};

constexpr const char* unknown = "404 unknown_lease";
constexpr const char* no_dispatch = "404 unknown_dispatch";
constexpr const char* forbidden = "403 forbidden";
const std::set<std::string> everybody{"nobody", "worker", "client", "operator", "auditor"};

const std::vector<table_row> table{
    {"POST", "/v1/jobs", R"({"queue":"q"})", {"client"}, "201", "201", forbidden},
    {"GET", "/v1/jobs", "", {"client", "operator"}, "200", "200", "200"},
    {"GET", "/v1/jobs?queue=q", "", {"client", "operator"}, "200", "200", forbidden},
    {"POST", "/v1/jobs/j:cancel", "", {"client", "operator"}, "200", unknown, forbidden},
    {"POST", "/v1/jobs/done:redrive", "", {"client", "operator"}, "201", unknown, forbidden},
    {"POST", "/v1/jobs/j:revoke", "", {"operator"}, "200", unknown, forbidden},
    {"POST", "/v1/jobs/j:resolve", "", {"operator"}, "200", unknown, forbidden},
    {"POST",
     "/v1/jobs/j:reconcile",
     R"({"outcome":"failed"})",
     {"operator"},
     "200",
     unknown,
     forbidden},
    {"GET", "/v1/jobs/j:why", "", {"client", "operator"}, "200", unknown, forbidden},
    {"GET", "/v1/jobs/j/evidence", "", {"client", "operator"}, "200", unknown, forbidden},
    {"GET", "/v1/jobs/j", "", {"worker", "client", "operator"}, "200", unknown, forbidden},
    {"GET",
     "/v1/jobs/j?wait_for=settled&wait_ms=1",
     "",
     {"worker", "client", "operator"},
     "200",
     unknown,
     forbidden},
    {"POST",
     "/v1/keys:normalize",
     acquire_body,
     {"worker", "client", "operator"},
     "200",
     "200",
     forbidden},
    {"POST",
     "/v1/locks:acquire",
     acquire_body,
     {"worker", "client"},
     "409 already_held",
     "201",
     forbidden},
    {"POST", "/v1/locks:renew", renew_body, {"worker", "client"}, "200", unknown, forbidden},
    {"POST", "/v1/locks:release", release_body, {"worker", "client"}, "200", unknown, forbidden},
    {"POST", "/v1/locks:revoke", revoke_body, {"operator"}, "200", unknown, forbidden},
    {"POST", "/v1/locks:resolve", revoke_body, {"operator"}, "200", unknown, forbidden},
    {"GET", "/v1/locks", "", {"worker", "client", "operator"}, "200", "200", "200"},
    {"GET", "/v1/locks?program=p", "", {"worker", "client", "operator"}, "200", "200", forbidden},
    {"GET",
     "/v1/locks/" + lock_path + "/evidence",
     "",
     {"client", "operator"},
     "200",
     unknown,
     forbidden},
    {"GET",
     "/v1/locks/" + lock_path,
     "",
     {"worker", "client", "operator"},
     "200",
     unknown,
     forbidden},
    {"GET",
     "/v1/locks/" + lock_path + "?wait_for=change&wait_ms=1",
     "",
     {"worker", "client", "operator"},
     "200",
     unknown,
     forbidden},
    {"GET",
     "/v1/fences/" + lock_path + "?token=1&observed",
     "",
     {"worker", "client", "operator"},
     "200",
     "200",
     forbidden},
    {"GET", "/v1/dispatches", "", {"operator"}, "200", "200", "200"},
    {"GET", "/v1/dispatches/j", "", {"operator"}, "200", no_dispatch, forbidden},
    {"POST", "/v1/dispatches/j:retry", "", {"operator"}, "200", no_dispatch, forbidden},
    {"POST",
     "/v1/dispatches/j:resolve",
     R"({"reason":"it is gone"})",
     {"operator"},
     "200",
     no_dispatch,
     forbidden},
    {"GET", "/v1/openapi.json", "", everybody, "200", "200", "200"},
    {"GET", "/v1/workers", "", {"client", "operator"}, "200", "200", "200"},
    {"GET", "/v1/queues", "", {"client", "operator"}, "200", "200", "200"},
    {"GET", "/v1/evidence", "", {"operator", "auditor"}, "200", "200", "200"},
    {"GET", "/v1/head", "", {"operator", "auditor"}, "200", "200", "200"},
    {"GET", "/v1/events", "", {"operator", "auditor"}, "101", "101", "101", true},
    {"GET", "/v1/stream", "", {"worker"}, "101", "101", "101", true},
    {"GET", "/metrics", "", {"operator", "auditor"}, "200", "200", "200"},
    {"GET", "/healthz", "", everybody, "200", "200", "200"},
    {"GET", "/readyz", "", everybody, "200", "200", "200"},
};
/// An auditor sees the evidence of every queue and program of its tenant, whatever it may use.
const std::vector<table_row> table_of_auditors{
    {"GET", "/v1/jobs/j/evidence", "", {"auditor"}, "200", unknown, "200"},
    {"GET", "/v1/locks/" + lock_path + "/evidence", "", {"auditor"}, "200", unknown, "200"},
    {"GET", "/v1/dispatches", "", {"auditor"}, "200", "200", "200"},
    {"GET", "/v1/dispatches/j", "", {"auditor"}, "200", no_dispatch, "200"},
};

constexpr std::array roles{std::pair{role::worker, "worker"}, std::pair{role::client, "client"},
                           std::pair{role::operator_, "operator"},
                           std::pair{role::auditor, "auditor"}};

/// Each role as ROLE with every grant, as stranger-ROLE with every grant of the tenant "u", as
/// narrow-ROLE with a queue and a program that nothing here is of, as bare-ROLE with no grant.
principal_set all_principals() {
  principal_set all;
  const auto add = [&](const std::string& name, const char* tenant, role what,
                       std::vector<std::string> grants) {
    principal_entry e;
    e.who.name = name;
    e.who.tenant = protocol::tenant_id(tenant);
    e.who.roles = {what};
    e.who.queues = grants;
    e.who.programs = std::move(grants);
    e.tokens = {hash_token(name)};
    all.entries.push_back(std::move(e));
  };
  for (const auto& [what, word] : roles) {
    const std::string name(word);
    add(name, "t", what, {"*"});
    add("stranger-" + name, "u", what, {"*"});
    add("narrow-" + name, "t", what, {"other"});
    add("bare-" + name, "t", what, {});
  }
  return all;
}

struct seen {
  std::string said;  ///< as the table writes it
  http_response response;
  std::vector<std::string> calls;  ///< of the coordinator
};

/// A rig of its own for each question: what one does must not be seen by the next.
class asked_rig : public api_rig {
 public:
  explicit asked_rig(bool with_things = true) {
    api->shared.principals->replace(all_principals());
    if (!with_things) return;
    gateway.add_job("t", "j");
    gateway.add_job("t", "done", "q", protocol::lease_state::completed);
    protocol::dispatch_change cancel;
    cancel.key = {protocol::tenant_id("t"), protocol::lease_id("j")};
    cancel.gen = {1};
    cancel.at = cancel.cancel_requested_at = {1'000};
    store->dispatches().apply({cancel});
    actors::acquire_request lock;
    lock.canonical = lock_text;
    lock.key = {protocol::tenant_id("t"), keys::lock_lease_id(lock_text)};
    lock.holder = protocol::holder("somebody/default");
    lock.spec.name = {"p", protocol::target_kind::host, "example.com", "", ""};
    lock.spec.typed = "example.com";
    gateway.add_lock(lock);
  }

  seen see(const table_row& r, const std::string& principal) {
    std::string body = r.body;
    if (const auto me = body.find("ME/"); me != std::string::npos) body.replace(me, 2, principal);
    auto what = request(r.method, r.path, principal, std::move(body));
    what.headers.emplace_back("x-request-id", "one");
    seen out;
    out.response = r.upgrade ? upgrade(std::move(what)) : ask(std::move(what));
    out.calls = gateway.calls;
    out.said = std::to_string(out.response.status);
    if (out.response.status >= 400) {
      out.said += " " + std::string(json(out.response).at("reason").as_string());
    }
    return out;
  }

 private:
  http_response upgrade(http_request what) {
    what.headers.emplace_back("sec-websocket-protocol", "leasehold.v1.protobuf");
    const auto answer = http->upgrade(what);
    const auto* refused = std::get_if<upgrade_refused>(&answer);
    return refused != nullptr ? refused->response : http_response{101, {}, ""};
  }
};

seen see(const table_row& r, const std::string& principal, bool with_things = true) {
  asked_rig rig(with_things);
  return rig.see(r, principal);
}

/// The operation of docs/openapi.json that serves a path.
class described_api {
 public:
  described_api() : document_(json::parse(asked_rig().ask("GET", "/v1/openapi.json", "").body)) {}

  /// Whether the answer is one that the document tells of, in status, reason and shape.
  void expect_told_of(const table_row& r, const seen& got) const {
    const auto what = std::string(r.method) + " " + r.path;
    const auto& o = operation(r);
    const auto* response =
        o.at("responses").as_object().if_contains(std::to_string(got.response.status));
    ASSERT_NE(response, nullptr) << what << ": " << got.said;
    const tests::json_schema schema(document_);
    const auto* reference = response->as_object().if_contains("$ref");
    const auto& shape =
        (reference != nullptr ? *schema.resolve(reference->as_string()) : *response).as_object();
    if (got.response.status >= 400) {
      const auto body = api_rig::json(got.response);
      const auto& known = o.at("x-reasons").as_array();
      EXPECT_NE(std::ranges::find(known, body.at("reason")), known.end()) << what << got.said;
    }
    if (got.response.status == 101) return;
    std::string type = api_rig::header(got.response, "Content-Type");
    type = type.substr(0, type.find(';'));
    const auto* content = shape.at("content").as_object().if_contains(type);
    ASSERT_NE(content, nullptr) << what << ": " << type;
    if (!type.ends_with("json") || type == "application/x-ndjson") return;
    const auto wrong = schema.complaints(content->at("schema"), json::parse(got.response.body));
    EXPECT_TRUE(wrong.empty()) << what << ": " << wrong.front();
  }

 private:
  const json::object& operation(const table_row& r) const {
    const auto target = parse_target(r.path);
    std::string method(r.method);
    for (char& c : method) c = static_cast<char>(std::tolower(c));
    for (const route& each : routes()) {
      if (each.method != r.method || !match_path(*target, each.pattern)) continue;
      return document_.at("paths").at(each.pattern).at(method).as_object();
    }
    throw std::logic_error("no route for " + r.path);
  }

  json::value document_;
};

/// Names another thing in the path.
void put_id(std::string& path, const std::string& id) {
  for (const std::string& known :
       {std::string("/j:"), std::string("/done:"), std::string("/j/"), "/" + lock_path}) {
    const auto at = path.find(known);
    if (at == std::string::npos) continue;
    const bool closed = known.back() == ':' || known.back() == '/';
    path.replace(at + 1, known.size() - (closed ? 2 : 1), id);
    return;
  }
}

/// The evidence of one job or lock, or what was dispatched, of which auditors have a table of their
/// own.
bool is_of_a_thing(const table_row& r) {
  const bool is_read = std::string_view(r.method) == "GET";
  if (is_read && r.path.starts_with("/v1/dispatches")) return true;
  return r.path.ends_with("/evidence") && r.path != "/v1/evidence";
}

std::vector<table_row> both_tables() {
  auto all = table;
  all.insert(all.end(), table_of_auditors.begin(), table_of_auditors.end());
  return all;
}

TEST(AccessTable, HasEveryRoute) {
  std::set<std::string_view> walked;
  for (const table_row& r : table) {
    const auto target = parse_target(r.path);
    ASSERT_TRUE(target) << r.path;
    const auto found = std::ranges::find_if(routes(), [&](const route& each) {
      return each.method == r.method && match_path(*target, each.pattern);
    });
    ASSERT_NE(found, routes().end()) << r.path;
    walked.insert(std::string_view(found->pattern.data(), found->pattern.size()));
    EXPECT_EQ(found->upgrade != nullptr, r.upgrade) << r.path;
  }
  std::set<std::string_view> all;
  for (const route& each : routes()) all.insert(each.pattern);
  EXPECT_EQ(walked, all);
}

TEST(AccessTable, IsWhatEachPrincipalMeets) {
  const described_api described;
  for (const table_row& r : both_tables()) {
    for (const auto& [what, word] : roles) {
      const std::string role(word);
      const bool let_in = r.roles.contains(role);
      if (!let_in && is_of_a_thing(r) && (role == "auditor") != r.roles.contains("auditor")) {
        continue;  // the other table tells of it
      }
      for (const auto& [prefix, expected] : {std::pair{"", r.ok},
                                             {"stranger-", r.stranger},
                                             {"narrow-", r.narrow},
                                             {"bare-", r.narrow}}) {
        const auto principal = prefix + role;
        const auto got = see(r, principal);
        EXPECT_EQ(got.said, let_in ? expected : forbidden)
            << r.method << " " << r.path << " as " << principal << ": " << got.response.body;
        described.expect_told_of(r, got);
      }
    }
    const bool open = r.roles.contains("nobody");
    for (const char* token : {"", "lh_wrong"}) {
      const auto got = see(r, token);
      EXPECT_EQ(got.said, open ? r.ok : "401 unauthenticated") << r.path;
      EXPECT_TRUE(open || got.calls.empty()) << r.path;
      described.expect_told_of(r, got);
    }
  }
}

/// Whatever the thing is: the table's, nobody's, or one that cannot be.
TEST(AccessTable, ARoleThatMayNeverDoItIsRefusedBeforeAnythingIsLookedAt) {
  for (const table_row& r : table) {
    for (const auto& [what, word] : roles) {
      if (r.roles.contains(word) || (word == std::string_view("auditor") && is_of_a_thing(r))) {
        continue;
      }
      for (const char* id : {"", "nobodys", "no%20id"}) {
        table_row asked = r;
        if (*id != '\0') put_id(asked.path, id);
        const auto got = see(asked, word);
        EXPECT_EQ(got.said, forbidden) << asked.path << " as " << word;
        EXPECT_TRUE(got.calls.empty()) << asked.path << " as " << word;
      }
    }
  }
}

/// The same question where the thing is another tenant's, and where nobody has one.
TEST(AccessTable, WhatIsAnothersReadsAsWhatNeverWasByteForByte) {
  for (const table_row& r : both_tables()) {
    for (const auto& [what, word] : roles) {
      const auto principal = std::string("stranger-") + word;
      const auto theirs = see(r, principal, true);
      const auto nobodys = see(r, principal, false);
      const auto about = std::string(r.method) + " " + r.path + " as " + principal;
      EXPECT_EQ(theirs.response.status, nobodys.response.status) << about;
      EXPECT_EQ(theirs.response.headers, nobodys.response.headers) << about;
      EXPECT_EQ(theirs.calls, nobodys.calls) << about;
      if (r.path == "/metrics") continue;  // it tells of the whole process
      auto a = theirs.response.body;
      auto b = nobodys.response.body;
      EXPECT_EQ(a, b) << about;
    }
  }
}

TEST(AccessTable, TheLeaseIdOfAnothersLockReadsAsWhatNeverWas) {
  const auto id = keys::lock_lease_id(lock_text).value;
  for (const char* path : {"/v1/locks/", "/v1/fences/"}) {
    const table_row r{"GET", path + id + (path[4] == 'f' ? "?observed" : ""), "", {}, "", "", ""};
    const auto theirs = see(r, "stranger-client", true);
    const auto nobodys = see(r, "stranger-client", false);
    EXPECT_EQ(theirs.response.body, nobodys.response.body) << path;
    EXPECT_EQ(theirs.calls, nobodys.calls) << path;
  }
  for (const char* verb : {"renew", "release"}) {
    const table_row r{"POST",
                      std::string("/v1/locks:") + verb,
                      R"({"holder":"ME/default","generation":1,)" +
                          std::string(verb[2] == 'n' ? R"("sequence":1,)" : "") +
                          R"("lease_id":")" + id + "\"}",
                      {},
                      "",
                      "",
                      ""};
    const auto theirs = see(r, "stranger-client", true);
    EXPECT_EQ(theirs.said, unknown);
    EXPECT_EQ(theirs.response.body, see(r, "stranger-client", false).response.body);
  }
}

TEST(AccessTable, AListShowsWhatIsGrantedAndNothingElse) {
  for (const char* path : {"/v1/jobs", "/v1/locks"}) {
    const table_row r{"GET", path, "", {}, "", "", ""};
    const std::string name = path + 4;
    EXPECT_GT(api_rig::json(see(r, "client").response).at(name).as_array().size(), 0U);
    for (const char* principal : {"narrow-client", "bare-client", "stranger-client"}) {
      EXPECT_EQ(see(r, principal).response.body, R"({")" + name +
                                                     R"(":[],"next_page_token":""})"
                                                     "\n")
          << path << " as " << principal;
    }
  }
}

TEST(AccessTable, AHolderSpeaksForItselfAlone) {
  for (const char* verb : {"renew", "release"}) {
    for (const char* holder : {"somebody/default", "client", "clientx/default", "/default"}) {
      const table_row r{"POST",
                        std::string("/v1/locks:") + verb,
                        R"({"key":"t/p/host:example.com//","generation":1,)" +
                            std::string(verb[2] == 'n' ? R"("sequence":1,)" : "") +
                            R"("holder":")" + holder + "\"}",
                        {},
                        "",
                        "",
                        ""};
      const auto got = see(r, "client");
      EXPECT_EQ(got.said, "403 holder_not_yours") << verb << " by " << holder;
      EXPECT_TRUE(got.calls.empty()) << verb << " by " << holder;
    }
  }
}

}  // namespace
}  // namespace leasehold::server
