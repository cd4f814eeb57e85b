#include "cancel_scene.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <regex>

#include "leasehold/client/process_identity.hpp"

namespace leasehold::e2e {

namespace {

/// Claims and pauses are short, so that what is tried again is tried again within a test; the
/// process stage is served by the coordinator itself.
std::vector<std::string> arguments_of(const cancel_store& store) {
  std::vector<std::string> all{
      "--dispatch-controllers", "stream,process", "--dispatch-claim",   "1500ms",
      "--dispatch-ack-window",  "300ms",          "--dispatch-backoff", "200ms",
      "--dispatch-backoff-max", "400ms"};
  all.insert(all.end(), store.arguments.begin(), store.arguments.end());
  return all;
}

std::string unused_name() {
  static int made = 0;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return "j" + std::to_string(now.count()) + "-" + std::to_string(++made);
}

/// What the newest row says.
std::string reason_in(const std::vector<json::object>& rows) {
  return rows.empty() ? "" : std::string(rows.back().at("reason").as_string());
}

}  // namespace

std::vector<cancel_store> cancel_stores() {
  std::vector<cancel_store> all{{"sqlite", {}}};
  if (const char* url = std::getenv("LEASEHOLD_TEST_STORE")) {
    // The server of the case before was killed: its epoch is taken when a term has passed.
    all.push_back({"other", {"--store", url, "--epoch-term", "1s"}});
  }
  return all;
}

// ---- a process

working_process::working_process(const std::string& script) {
  number_ = fork();
  if (number_ == 0) {
    setpgid(0, 0);
    execl("/bin/sh", "sh", "-c", script.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  if (number_ > 0) setpgid(number_, number_);
}

working_process::~working_process() {
  if (number_ <= 0) return;
  if (!ended_) kill(-number_, SIGKILL);
  if (!ended_) waitpid(number_, nullptr, 0);
}

std::optional<int> working_process::wait() {
  eventually([this] {
    int status = 0;
    if (!ended_ && waitpid(number_, &status, WNOHANG) == number_) ended_ = status;
    return ended_.has_value();
  });
  return ended_;
}

// ---- the scene

cancel_scene::cancel_scene(const cancel_store& store)
    : job(unused_name()), server(2, arguments_of(store)) {
  std::ofstream(kept_.path() / "worker.token") << server.token("w1");
  std::ofstream(kept_.path() / "client.token") << server.token("client");
  for (const auto* name : {"worker.token", "client.token"}) {
    std::filesystem::permissions(kept_.path() / name, std::filesystem::perms::owner_read);
  }
}

void cancel_scene::submit(const json::object& policy) {
  json::object all{{"lease_duration_ms", 3'600'000},
                   {"ack_timeout_ms", 3'600'000},
                   {"cancel_grace_ms", 3'600'000},
                   {"reconcile_window_ms", 3'600'000},
                   {"max_clock_skew_ms", 3'600'000}};
  for (const auto& [key, value] : policy) all[key] = value;
  server.submit(job, all);
}

stream_peer& cancel_scene::take(std::int64_t gen, const std::string& principal) {
  hand.emplace(server, principal);
  hand->hello();
  hand->credit(1);
  EXPECT_TRUE(hand->offer_of(job));
  hand->start(job, gen);
  return *hand;
}

void cancel_scene::run_worker(const std::string& script, const std::string& grace) {
  worker_ = std::make_unique<program_run>(
      LEASEHOLD,
      std::vector<std::string>{"--url", server.url(), "--token-file",
                               (kept_.path() / "worker.token").string(), "worker", "--queue", "q",
                               "--grace", grace, "--", "sh", "-c", script},
      kept_.path() / "worker.log");
  EXPECT_TRUE(server.reaches(job, "active")) << content_of(kept_.path() / "worker.log");
}

void cancel_scene::name_process(const working_process& process, std::int64_t gen) {
  const auto handle = client::identify_process(process.number());
  ASSERT_TRUE(handle);
  const auto id = hand->say(
      protocol::process_registration{protocol::lease_id{job}, {gen}, hand->holder(), *handle});
  const auto said = hand->verdict_of(id);
  ASSERT_TRUE(said);
  EXPECT_EQ(said->reason, protocol::reason::process_registered);
}

api_answer cancel_scene::operate(const std::string& what, const json::object& body,
                                 const std::string& principal) {
  return server.post("/v1/jobs/" + job + ":" + what, body, principal);
}

void cancel_scene::cancel() {
  const auto said = operate("cancel", {}, "client");
  EXPECT_EQ(said.status, 200) << said.text;
}

protocol::frame_verdict cancel_scene::tell(protocol::event_kind kind, std::int64_t gen) {
  return hand->tell(hand->frame(kind, job, gen));
}

protocol::frame_verdict cancel_scene::report(protocol::outcome how, std::int64_t gen) {
  return hand->tell(hand->result(job, gen, how));
}

cancel_standing cancel_scene::now() {
  cancel_standing is;
  is.state = server.job(job).at("state").as_string();
  is.reason = reason_in(server.evidence(job));
  const auto found = server.get("/v1/dispatches/" + job, "operator");
  is.dispatch = "none";
  if (found.status == 200) {
    const auto* inner = found.body.if_contains("dispatch");
    const auto& record = inner != nullptr ? inner->as_object() : found.body;
    is.dispatch = record.at("status").as_string();
  }
  is.sentence = run_leasehold({"--url", server.url(), "--token-file",
                               (kept_.path() / "client.token").string(), "job", "show", job})
                    .output;
  return is;
}

void cancel_scene::expect(const cancel_standing& wanted) {
  cancel_standing is;
  const bool stands = eventually(
      [&] {
        is = now();
        return is.state == wanted.state && is.reason == wanted.reason &&
               is.dispatch == wanted.dispatch &&
               std::regex_search(is.sentence, std::regex(wanted.sentence));
      },
      std::chrono::seconds{15}, std::chrono::milliseconds{20});
  EXPECT_TRUE(stands) << "state " << is.state << ", reason " << is.reason << ", dispatch "
                      << is.dispatch << "\n"
                      << is.sentence << "wanted: " << wanted.state << ", " << wanted.reason << ", "
                      << wanted.dispatch << ", " << wanted.sentence;
}

}  // namespace leasehold::e2e
