// The coordinator over TLS: whom it believes, who believes it, and what a reload changes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <mutex>

#include "leasehold/client/worker.hpp"
#include "live_server.hpp"
#include "support/raw_http.hpp"
#include "support/tls_peer.hpp"

namespace leasehold::e2e {
namespace {

using client::job;
using client::worker;
using client::worker_event;
using test::certificate_authority;
using test::certificate_files;
using test::tls_peer;
using testing::HasSubstr;
using testing::Not;

/// A worker that does all jobs, and what it was told of itself.
class tls_worker {
 public:
  explicit tls_worker(client::worker_options options) {
    options.queues = {{"q", 4, {}}};
    options.on_job = [](const job& work) { work.complete("done " + work.id()); };
    options.on_event = [this](const worker_event& event) {
      const std::lock_guard hold(mutex_);
      events_.push_back(event);
    };
    worker_ = std::make_unique<worker>(std::move(options));
    fault_ = worker_->start();
  }
  ~tls_worker() { worker_->stop({0}, {0}); }
  tls_worker(const tls_worker&) = delete;
  tls_worker& operator=(const tls_worker&) = delete;

  [[nodiscard]] const std::optional<std::string>& fault() const { return fault_; }
  [[nodiscard]] bool connects(std::chrono::milliseconds within = patience) const {
    return eventually([this] { return worker_->connected(); }, within);
  }
  [[nodiscard]] bool connected() const { return worker_->connected(); }
  [[nodiscard]] bool hears(std::string_view text, std::chrono::milliseconds within = patience) {
    return eventually([&] { return count_of(text) > 0; }, within);
  }
  [[nodiscard]] std::ptrdiff_t count_of(std::string_view text) {
    const std::lock_guard hold(mutex_);
    return std::ranges::count_if(
        events_, [&](const worker_event& e) { return e.text.find(text) != std::string::npos; });
  }
  [[nodiscard]] std::ptrdiff_t ends() {
    const std::lock_guard hold(mutex_);
    return std::ranges::count_if(events_, [](const worker_event& e) {
      return e.what == worker_event::kind::disconnected || e.what == worker_event::kind::ended;
    });
  }

 private:
  std::mutex mutex_;
  std::vector<worker_event> events_;
  std::unique_ptr<worker> worker_;
  std::optional<std::string> fault_;
};

class over_tls : public on_threads {
 protected:
  over_tls() { write_config(mine); }

  void write_config(const certificate_files& files, const std::string& clients = "optional") const {
    std::ofstream(config()) << "[tls]\ncertificate = \"" << files.certificate.string()
                            << "\"\nprivate_key = \"" << files.key.string() << "\"\n"
                            << (clients == "none"
                                    ? ""
                                    : "client_ca = \"" + signer_file().string() + "\"\n")
                            << "client_certificates = \"" << clients << "\"\n";
  }
  [[nodiscard]] std::filesystem::path config() const { return kept.path() / "leaseholdd.toml"; }
  [[nodiscard]] std::filesystem::path signer_file() const { return kept.path() / "signer.pem"; }
  void start() {
    server = std::make_unique<live_server>(
        GetParam(), std::vector<std::string>{"--config", config()}, std::vector<std::string>{},
        nullptr, std::vector<std::string>{}, tls_trust{.ca_file = authority.file()});
  }
  void reload(int times = 1) {
    server->signal(SIGHUP);
    ASSERT_TRUE(server->has_logged("\"event\":\"reloaded\"", times)) << server->log();
  }
  /// As who trusts the server's signer, with the token of `principal`.
  [[nodiscard]] client::worker_options options(const std::string& principal) const {
    client::worker_options out;
    out.urls = {"wss://localhost:" + std::to_string(server->port())};
    if (!principal.empty()) out.token = server->token(principal);
    out.ca_file = authority.file();
    out.reconnect_most = {200};
    return out;
  }
  [[nodiscard]] client::worker_options options(const certificate_files& own) const {
    auto out = options(std::string());
    out.cert_file = own.certificate;
    out.key_file = own.key;
    return out;
  }
  /// What a call with this certificate and this principal's token is answered.
  tools::http_answer call(const certificate_files& own, const std::string& principal,
                          const std::string& target = "/v1/jobs") {
    tools::client_options chosen;
    chosen.where = {.tls = true, .host = "localhost", .port = std::to_string(server->port())};
    chosen.ca_file = authority.file();
    chosen.cert_file = own.certificate;
    chosen.key_file = own.key;
    if (!principal.empty()) chosen.token = server->token(principal);
    const auto said = tools::http_client(chosen).call({.target = target});
    const auto* answer = std::get_if<tools::http_answer>(&said);
    return answer != nullptr
               ? *answer
               : tools::http_answer{.body = std::get<tools::transport_failure>(said).sentence};
  }
  /// Runs `leasehold token` on the server's principals.
  void change_principals(std::vector<std::string> words) {
    words.insert(words.begin(), "token");
    words.insert(words.end(), {"--principals", server->principals_file().string()});
    const auto ran = run_leasehold(words);
    ASSERT_EQ(ran.exit_code, 0) << ran.output;
  }
  [[nodiscard]] long serial_now() const {
    return tls_peer(server->port(), {.ca = authority.file()}).serial();
  }

  tests::temporary_directory kept;
  certificate_authority authority{kept.path(), "authority"};
  certificate_authority signer{kept.path(), "signer"};
  certificate_authority stranger{kept.path(), "stranger"};
  certificate_files mine = authority.issue("server", {"server", "DNS:localhost,IP:127.0.0.1"});
  std::unique_ptr<live_server> server;
};
LEASEHOLD_ON_THREADS(over_tls);

TEST_P(over_tls, AJobIsSubmittedAndDoneOverTls) {
  start();
  server->submit("plain-token");
  tls_worker one(options("w1"));
  ASSERT_EQ(one.fault(), std::nullopt);
  ASSERT_TRUE(server->reaches("plain-token", "completed"));
  EXPECT_EQ(server->job("plain-token").at("terminal_detail").as_string(), "done plain-token");
  EXPECT_EQ(one.ends(), 0);
  EXPECT_THAT(server->metrics(), HasSubstr("leasehold_tls_certificate_expiry_seconds"));
  EXPECT_THAT(server->metrics(), HasSubstr("leasehold_tls_handshake_failures_total 0"));
}

TEST_P(over_tls, TheProgramsWorkOverTlsWithATokenAndWithACertificate) {
  start();
  const auto own = signer.issue("shop", {"shop", ""});
  change_principals({"add", "shop", "--role", "client", "--certificate", "shop"});
  change_principals({"add", "hands", "--role", "worker", "--certificate", "spiffe://acme/hands"});
  reload();
  const auto hands = signer.issue("hands", {"", "URI:spiffe://acme/hands"});
  const auto as = [&](const certificate_files& who, std::vector<std::string> words) {
    words.insert(words.begin(), {"--url", "https://localhost:" + std::to_string(server->port()),
                                 "--ca-file", authority.file().string(), "--cert-file",
                                 who.certificate.string(), "--key-file", who.key.string()});
    return run_leasehold(words);
  };
  const auto submitted =
      as(own, {"submit", "--queue", "q", "--job", "by-hand", "--payload", "work"});
  EXPECT_EQ(submitted.exit_code, 0) << submitted.output;
  const auto worked =
      as(hands, {"worker", "--queue", "q", "--exit-when-idle", "500ms", "--", "true"});
  EXPECT_EQ(worked.exit_code, 0) << worked.output;
  EXPECT_TRUE(server->reaches("by-hand", "completed"));
  const auto listed =
      run_leasehold({"token", "list", "--principals", server->principals_file().string()});
  EXPECT_THAT(listed.output, HasSubstr("spiffe://acme/hands"));
}

// ---- who believes the server

TEST_P(over_tls, AServerOfAnotherSignerIsRefusedBeforeTheTokenIsSent) {
  mine = stranger.issue("server", {"server", "DNS:localhost,IP:127.0.0.1"});
  write_config(mine);
  server = std::make_unique<live_server>(
      GetParam(), std::vector<std::string>{"--config", config()}, std::vector<std::string>{},
      nullptr, std::vector<std::string>{}, tls_trust{.ca_file = stranger.file()});
  const auto said = call({}, "client");
  EXPECT_EQ(said.status, 0);
  EXPECT_THAT(said.body, HasSubstr("signed by who is trusted"));
  tls_worker one(options("w1"));
  EXPECT_TRUE(one.hears("certificate verify failed"));
  EXPECT_FALSE(one.connected());
  EXPECT_EQ(server->get("/v1/workers").body.at("workers").as_array().size(), 0U);
}

TEST_P(over_tls, AServerOfAnotherNameIsRefused) {
  mine = authority.issue("server", {"localhost", "DNS:elsewhere.example,IP:127.0.0.1"});
  write_config(mine);
  start();
  const auto said = call({}, "client");
  EXPECT_EQ(said.status, 0);
  EXPECT_THAT(said.body, HasSubstr("made for localhost"));
  tls_worker one(options("w1"));
  EXPECT_TRUE(one.hears("certificate verify failed"));
  EXPECT_FALSE(one.connected());
}

TEST_P(over_tls, AWorkersFilesThatCannotBeUsedKeepItFromStarting) {
  start();
  auto chosen = options("w1");
  chosen.ca_file = kept.path() / "missing.pem";
  EXPECT_THAT(tls_worker(chosen).fault().value_or(""), HasSubstr("missing.pem"));
  chosen = options(mine);
  chosen.key_file = kept.path() / "missing.key";
  EXPECT_THAT(tls_worker(chosen).fault().value_or(""), HasSubstr("missing.key"));
  chosen = options(mine);
  chosen.key_file.clear();
  EXPECT_THAT(tls_worker(chosen).fault().value_or(""), HasSubstr("belong together"));
}

TEST_P(over_tls, APlainRequestIsToldThatThePortSpeaksTls) {
  start();
  const auto ran =
      run_leasehold({"--url", "http://127.0.0.1:" + std::to_string(server->port()), "jobs"});
  EXPECT_NE(ran.exit_code, 0);
  test::raw_peer peer(server->port());
  ASSERT_TRUE(peer.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  const auto answer = test::read_answer(peer);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 400);
  EXPECT_THAT(answer->body, HasSubstr("https://"));
  EXPECT_TRUE(server->has_logged("TLS handshakes failed"));
  EXPECT_TRUE(server->has_logged("\"newest\":\"http request\"")) << server->log();
}

// ---- whom the server believes

TEST_P(over_tls, AClientCertificateNamesItsPrincipalWithoutAToken) {
  start();
  const auto own = signer.issue("own", {"builder", "DNS:builder.example"});
  EXPECT_EQ(call(own, "").status, 401) << "it names nobody yet";
  change_principals({"add", "builder", "--role", "worker", "--certificate", "builder.example"});
  change_principals({"add", "reader", "--role", "client", "--certificate", "builder"});
  reload();
  EXPECT_EQ(call(own, "", "/v1/head").status, 403) << "known, and a worker";
  tls_worker one(options(own));
  ASSERT_TRUE(one.connects());
  EXPECT_THAT(server->get("/v1/workers").text, HasSubstr("builder/"));
  // The common name is another principal's, and counts only where there is no other name.
  EXPECT_EQ(call(signer.issue("other", {"builder", ""}), "").status, 200);
}

TEST_P(over_tls, ATokenBesideACertificateMustNameTheSamePrincipal) {
  start();
  change_principals({"add", "client", "--role", "client", "--certificate", "the client"});
  reload();
  const auto own = signer.issue("own", {"the client", ""});
  const auto nobodys = signer.issue("nobodys", {"nobody", ""});
  EXPECT_EQ(call(own, "").status, 200);
  EXPECT_EQ(call(own, "client").status, 200);
  const auto refused = call(own, "operator");
  EXPECT_EQ(refused.status, 401);
  EXPECT_THAT(refused.body, HasSubstr("name different principals"));
  EXPECT_EQ(call(nobodys, "client").status, 200) << "what names nobody contradicts nobody";
  EXPECT_EQ(call(nobodys, "").status, 401);
  EXPECT_EQ(call({}, "client").status, 200);
  EXPECT_EQ(call({}, "").status, 401);
}

TEST_P(over_tls, ACertificateOfAnUnknownSignerIsRefused) {
  start();
  change_principals({"add", "builder", "--role", "worker", "--certificate", "builder"});
  reload();
  for (const auto& own :
       {stranger.issue("false", {"builder", ""}), signer.issue("past", {"builder", "", -1})}) {
    for (int times = 0; times < 20; ++times) {
      const auto said = call(own, "");
      EXPECT_EQ(said.status, 0);
      EXPECT_THAT(said.body,
                  HasSubstr("refused the client certificate in " + own.certificate.string()));
    }
  }
  EXPECT_TRUE(server->has_logged("TLS handshakes failed"));
}

TEST_P(over_tls, TheSessionOfACertificateEndsWithItsPrincipalWithin2Seconds) {
  start();
  const auto own = signer.issue("own", {"builder", ""});
  change_principals({"add", "builder", "--role", "worker", "--certificate", "builder"});
  change_principals({"add", "other", "--role", "worker", "--certificate", "other"});
  reload();
  tls_worker revoked(options(own));
  tls_worker stays(options(signer.issue("other", {"other", ""})));
  ASSERT_TRUE(revoked.connects());
  ASSERT_TRUE(stays.connects());
  change_principals({"revoke", "builder"});
  server->signal(SIGHUP);
  EXPECT_TRUE(revoked.hears("closed the connection with 4004", std::chrono::seconds{2}));
  ASSERT_TRUE(server->has_logged("\"event\":\"reloaded\"", 2));
  EXPECT_EQ(call(own, "").status, 401);
  EXPECT_EQ(stays.ends(), 0);
}

TEST_P(over_tls, AChangedCertificateNameEndsTheSessionOfTheOldOne) {
  start();
  change_principals({"add", "builder", "--role", "worker", "--certificate", "old"});
  reload();
  tls_worker old(options(signer.issue("old", {"old", ""})));
  ASSERT_TRUE(old.connects());
  change_principals({"add", "builder", "--role", "worker", "--certificate", "new"});
  server->signal(SIGHUP);
  EXPECT_TRUE(old.hears("closed the connection with 4004", std::chrono::seconds{2}));
  EXPECT_TRUE(tls_worker(options(signer.issue("new", {"new", ""}))).connects());
}

// ---- reload

TEST_P(over_tls, AReloadSwapsTheCertificateAndLeavesAnOpenStreamAlone) {
  start();
  tls_worker one(options("w1"));
  ASSERT_TRUE(one.connects());
  const long before = serial_now();
  ASSERT_GT(before, 0);
  // Other files by the configuration, and then the same files with another content.
  write_config(authority.issue("second", {"server", "DNS:localhost,IP:127.0.0.1"}));
  reload();
  EXPECT_EQ(serial_now(), before + 1);
  authority.issue("second", {"server", "DNS:localhost,IP:127.0.0.1"});
  reload(2);
  EXPECT_EQ(serial_now(), before + 2);
  server->submit("after-the-reload");
  EXPECT_TRUE(server->reaches("after-the-reload", "completed"));
  EXPECT_EQ(one.ends(), 0);
}

TEST_P(over_tls, ABrokenReloadKeepsTheOldFilesAndSaysSoInOneLine) {
  start();
  const long before = serial_now();
  const auto revoked = signer.issue("own", {"builder", ""});
  change_principals({"add", "builder", "--role", "worker", "--certificate", "builder"});
  reload();
  tls_worker one(options(revoked));
  ASSERT_TRUE(one.connects());
  std::ofstream(mine.certificate) << "nothing\n";
  change_principals({"revoke", "builder"});
  server->signal(SIGHUP);
  ASSERT_TRUE(server->has_logged("TLS files not reloaded; the old ones stay"));
  EXPECT_TRUE(server->has_logged(mine.certificate.string() + " holds no certificate"));
  EXPECT_EQ(serial_now(), before);
  EXPECT_TRUE(one.hears("4004")) << "a bad file keeps nobody connected";
  const auto key = content_of(mine.key);
  EXPECT_THAT(server->log(), Not(HasSubstr(key.substr(40, 40))));
}

TEST_P(over_tls, FilesThatCannotBeUsedEndTheStartWithOneSentence) {
  start();
  server->kill();
  std::filesystem::remove(mine.key);
  const auto ended = server->start_in_vain();
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_THAT(ended.output, HasSubstr(mine.key.string() + " cannot be read"));
}

// ---- the end

TEST_P(over_tls, ADrainLetsAWorkerFinishAndEndsInGoodOrder) {
  start();
  tls_worker one(options("w1"));
  ASSERT_TRUE(one.connects());
  server->submit("last");
  ASSERT_TRUE(server->reaches("last", "completed"));
  // With 1.3 the client would be done before the server is.
  tls_peer idle(server->port(), {.ca = authority.file(), .most_version = TLS1_2_VERSION});
  ASSERT_TRUE(idle.secure()) << idle.fault();
  server->signal(SIGTERM);
  EXPECT_EQ(idle.read_to_end(), "");
  EXPECT_TRUE(idle.heard_end());
  EXPECT_EQ(server->wait_for_end(), 0);
  EXPECT_TRUE(eventually([&] { return one.ends() > 0; }));
}

}  // namespace
}  // namespace leasehold::e2e
