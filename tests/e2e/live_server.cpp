#include "live_server.hpp"

#include <signal.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <utility>

#include "src/store/evidence_json.hpp"
#include "src/token_file.hpp"

namespace leasehold::e2e {
namespace {

std::string trimmed(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

int count_of(std::string_view text, std::string_view in) {
  int found = 0;
  for (auto at = in.find(text); at != std::string_view::npos; at = in.find(text, at + 1)) ++found;
  return found;
}

/// The port of the newest line that tells of one.
std::uint16_t port_in(const std::string& log) {
  constexpr std::string_view before = "\"port\":";
  const auto at = log.rfind(before);
  if (at == std::string::npos) return 0;
  return static_cast<std::uint16_t>(std::stoi(log.substr(at + before.size(), 5)));
}

std::vector<json::object> rows_of(const api_answer& said) {
  EXPECT_EQ(said.status, 200) << said.text;
  std::vector<json::object> rows;
  std::istringstream lines(said.text);
  for (std::string line; std::getline(lines, line);) {
    json::error_code no_json;
    auto row = json::parse(line, no_json);
    if (no_json || !row.is_object()) {
      ADD_FAILURE() << "no row: " << line;
      return rows;
    }
    // What dispatchers did to a cancel stands between the rows and is none.
    if (row.get_object().contains("dispatch_event")) continue;
    rows.push_back(std::move(row.get_object()));
  }
  return rows;
}

}  // namespace

live_server::live_server(int threads, std::vector<std::string> more,
                         std::vector<std::string> variables,
                         const std::function<void(const std::filesystem::path&)>& fill,
                         std::vector<std::string> launcher, tls_trust trust)
    : threads_(threads),
      more_(std::move(more)),
      variables_(std::move(variables)),
      launcher_(std::move(launcher)),
      trust_(std::move(trust)) {
  make_principals();
  if (fill) fill(data());
  start();
}

void live_server::make_principals() {
  const auto made = server::prepare_directory(data(), principals_file(), false);
  if (const auto* fault = std::get_if<server::token_fault>(&made)) {
    ADD_FAILURE() << fault->sentence;
    return;
  }
  tokens_["operator"] = trimmed(content_of(data() / "operator.token"));
  using enum actors::role;
  struct wanted {
    std::string name, tenant;
    std::vector<actors::role> roles;
  };
  const std::array<wanted, 6> all{{{"w1", "default", {worker}},
                                   {"w2", "default", {worker}},
                                   {"client", "default", {client}},
                                   {"auditor", "default", {auditor}},
                                   {"stranger", "elsewhere", {worker, client}},
                                   {"keeper", "t", {worker, client}}}};
  for (const auto& [name, tenant, roles] : all) {
    const auto added =
        server::add_token(principals_file(), {.name = name, .tenant = tenant, .roles = roles});
    if (const auto* fault = std::get_if<server::token_fault>(&added)) {
      ADD_FAILURE() << fault->sentence;
    } else {
      tokens_[name] = std::get<server::added_token>(added).token;
    }
  }
}

void live_server::add_worker(const std::string& principal) {
  const auto ran = run_leasehold(
      {"token", "add", principal, "--role", "worker", "--principals", principals_file().string()});
  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  // Beside the token it may say what is to be done next.
  const auto at = ran.output.find("lh_");
  ASSERT_NE(at, std::string::npos) << ran.output;
  tokens_[principal] = ran.output.substr(at, ran.output.find('\n', at) - at);
}

std::vector<std::string> live_server::arguments() const {
  std::vector<std::string> out{"--data",    data().string(),
                               "--listen",  "127.0.0.1:" + std::to_string(port_),
                               "--threads", std::to_string(threads_)};
  if (std::ranges::find(more_, "--heartbeat") == more_.end()) {
    out.insert(out.end(), {"--heartbeat", "60s"});
  }
  out.insert(out.end(), more_.begin(), more_.end());
  return out;
}

void live_server::start(const std::vector<std::string>& once) {
  clients_.clear();
  auto words = arguments();
  words.insert(words.end(), once.begin(), once.end());
  words.insert(words.begin(), LEASEHOLDD);
  words.insert(words.begin(), launcher_.begin(), launcher_.end());
  const auto program = words.front();
  words.erase(words.begin());
  process_ = std::make_unique<program_run>(program, words, log_file(), variables_);
  ++starts_;
  if (!has_logged("\"event\":\"listening\"", starts_)) {
    ADD_FAILURE() << "leaseholdd did not start:\n" << log();
    return;
  }
  port_ = port_in(log());
  EXPECT_TRUE(eventually([this] { return get("/readyz").status == 200; })) << log();
}

program_end live_server::start_in_vain() {
  const auto output = kept_.path() / "vain";
  std::filesystem::remove(output);
  program_run run(LEASEHOLDD, arguments(), output, variables_);
  const auto code = run.wait();
  return {code.value_or(-1), content_of(output)};
}

void live_server::kill() {
  process_->signal(SIGKILL);
  EXPECT_EQ(process_->wait(), 128 + SIGKILL);
  clients_.clear();
}

bool live_server::has_logged(std::string_view text, int times) const {
  return eventually([&] {
           return count_of(text, log()) >= times || process_->wait(std::chrono::milliseconds{0});
         }) &&
         count_of(text, log()) >= times;
}

api_answer live_server::call(const tools::http_call& what, const std::string& principal) {
  auto at = clients_.find(principal);
  if (at == clients_.end()) {
    tools::client_options chosen;
    const bool tls = !trust_.ca_file.empty();
    chosen.where = {.tls = tls, .host = "127.0.0.1", .port = std::to_string(port_)};
    chosen.ca_file = trust_.ca_file;
    chosen.cert_file = trust_.cert_file;
    chosen.key_file = trust_.key_file;
    if (!principal.empty()) chosen.token = token(principal);
    at = clients_.emplace(principal, tools::http_client(std::move(chosen))).first;
  }
  const auto said = at->second.call(what);
  const auto* answer = std::get_if<tools::http_answer>(&said);
  if (answer == nullptr) return {};
  api_answer out{answer->status, {}, answer->body};
  json::error_code no_json;
  const auto body = json::parse(answer->body, no_json);
  if (!no_json && body.is_object()) out.body = body.get_object();
  return out;
}

api_answer live_server::get(const std::string& target, const std::string& principal) {
  return call({.target = target}, principal);
}

api_answer live_server::post(const std::string& target, const json::object& body,
                             const std::string& principal) {
  return call({.method = "POST", .target = target, .body = json::serialize(body)}, principal);
}

void live_server::submit(const std::string& job, const json::object& policy,
                         const std::string& queue) {
  const auto said =
      post("/v1/jobs",
           {{"queue", queue}, {"job_id", job}, {"payload", "work of " + job}, {"policy", policy}});
  EXPECT_EQ(said.status, 201) << said.text;
}

json::object live_server::job(const std::string& id) { return get("/v1/jobs/" + id).body; }

bool live_server::reaches(const std::string& id, std::string_view state) {
  return eventually([&] {
    const auto found = job(id);
    const auto* is = found.if_contains("state");
    return is != nullptr && is->as_string() == state;
  });
}

std::vector<json::object> live_server::evidence(const std::string& job) {
  return rows_of(get("/v1/jobs/" + job + "/evidence"));
}

std::vector<json::object> live_server::all_evidence() {
  return rows_of(get("/v1/evidence", "auditor"));
}

void expect_proven(const live_server& server) {
  const auto said = run_leasehold({"verify", "--data", server.data().string()});
  EXPECT_EQ(said.exit_code, 0) << said.output;
}

void expect_replayable(const live_server& server, const std::string& job) {
  const tests::temporary_directory kept;
  const auto token = kept.path() / "token";
  std::ofstream(token) << server.token("client");
  const auto story = run_leasehold({"--url", server.url(), "--token-file", token.string(), "job",
                                    "evidence", job, "--as-scenario"});
  ASSERT_EQ(story.exit_code, 0) << story.output;
  const auto file = kept.path() / "story.json";
  std::ofstream(file) << story.output;
  const auto checked = run_leasehold({"replay", "--check", file.string()});
  EXPECT_EQ(checked.exit_code, 0) << checked.output << story.output;
}

void expect_columns(const json::object& row, const json::object& wanted) {
  for (const auto& column : wanted) {
    const auto* found = row.if_contains(column.key());
    ASSERT_NE(found, nullptr) << column.key();
    EXPECT_EQ(*found, column.value()) << column.key() << " of " << json::serialize(row);
  }
}

json::object last_row(const std::vector<json::object>& rows, std::string_view event) {
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
    if (row->at("event").as_string() == event) return *row;
  }
  ADD_FAILURE() << "there is no row of " << event;
  return {};
}

std::string standing_of(const json::object& row) {
  json::object out;
  for (const auto column : protocol::replay_columns()) {
    if (storage::is_record_column(column)) out[column] = row.at(column);
  }
  return json::serialize(out);
}

}  // namespace leasehold::e2e
