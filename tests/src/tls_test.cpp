// The listener over TLS: the handshake and its bounds, and what a connection does behind it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "src/tls_context.hpp"
#include "support/net_rig.hpp"
#include "support/raw_http.hpp"
#include "support/temporary_directory.hpp"
#include "support/tls_peer.hpp"

namespace leasehold::server {
namespace {

using std::chrono::milliseconds;
using test::bytes_of;
using test::certificate_authority;
using test::certificate_files;
using test::net_rig;
using test::raw_peer;
using test::read_answer;
using test::read_close_code;
using test::read_frame;
using test::tls_peer;
using test::tls_wish;
using test::upgrade_request;
using testing::HasSubstr;

constexpr std::string_view request = "GET /names HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// Files of a server and of those who sign clients' certificates.
class tls_test : public testing::Test {
 protected:
  std::string fault() const {
    const auto read = tls_context::read(files);
    const auto* found = std::get_if<tls_fault>(&read);
    return found == nullptr ? "there is none" : found->sentence;
  }
  std::shared_ptr<live_tls> live() const {
    auto read = tls_context::read(files);
    if (const auto* found = std::get_if<tls_fault>(&read)) {
      ADD_FAILURE() << found->sentence;
      return nullptr;
    }
    return std::make_shared<live_tls>(std::get<std::shared_ptr<const tls_context>>(read));
  }
  void ask_for_certificates(client_certificates how) {
    files.client_ca = authority.file();
    files.clients = how;
  }
  [[nodiscard]] tls_wish wish(certificate_files own = {}) const {
    return {.ca = authority.file(), .own = std::move(own)};
  }
  /// The names that the server has read in the certificate; "none" without an answer.
  std::string names_seen(const certificate_files& own) {
    net_rig rig({}, 1, live());
    tls_peer peer(rig.port(), wish(own));
    peer.send(request);
    const auto answer = read_answer(peer);
    return answer ? answer->body : "none";
  }

  tests::temporary_directory kept;
  certificate_authority authority{kept.path(), "authority"};
  certificate_authority stranger{kept.path(), "stranger"};
  certificate_files mine = authority.issue("server", {"server", "DNS:localhost,IP:127.0.0.1"});
  tls_files files{mine.certificate, mine.key, {}, client_certificates::none};
};

// ---- files

TEST_F(tls_test, FilesThatCannotBeUsedAreNamedWithTheWayOut) {
  const auto missing = kept.path() / "missing.pem";
  const auto garbage = kept.path() / "garbage.pem";
  std::ofstream(garbage) << "-----BEGIN NOTHING-----\n";
  ::chmod(garbage.c_str(), 0600);
  const auto other = authority.issue("other", {"other", "DNS:other"});

  files.certificate = missing;
  EXPECT_THAT(fault(), HasSubstr(missing.string() + " cannot be read: No such file"));
  files.certificate = garbage;
  EXPECT_THAT(fault(), HasSubstr(garbage.string() + " holds no certificate"));
  files.certificate = kept.path();
  EXPECT_THAT(fault(), HasSubstr("is not a regular file"));
  files.certificate = mine.certificate;
  files.private_key = garbage;
  EXPECT_THAT(fault(), HasSubstr(garbage.string() + " holds no key"));
  files.private_key = other.key;
  EXPECT_THAT(fault(), HasSubstr("does not belong to the certificate in"));
  files.private_key = mine.key;
  files.clients = client_certificates::optional;
  files.client_ca = garbage;
  EXPECT_THAT(fault(), HasSubstr(garbage.string() + " holds no certificate"));
}

TEST_F(tls_test, AKeyThatOthersCanReadIsRefusedAndNamedWithItsMode) {
  for (const mode_t mode : {0640U, 0604U, 0660U}) {
    ASSERT_EQ(::chmod(mine.key.c_str(), mode), 0);
    // Root may share its keys with a group, for reading.
    if (::geteuid() == 0 && mode == 0640U) continue;
    EXPECT_THAT(fault(), HasSubstr("run: chmod 600 " + mine.key.string()));
  }
  ASSERT_EQ(::chmod(mine.key.c_str(), 0400), 0);
  EXPECT_EQ(fault(), "there is none");
}

TEST_F(tls_test, TheEndOfTheCertificateIsTold) {
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  const auto expires_s = live()->current()->expires_s();
  EXPECT_GT(expires_s, now + 86'000);
  EXPECT_LT(expires_s, now + 87'000);
  EXPECT_FALSE(live()->current()->has_expired());
  const auto past = authority.issue("past", {"server", "DNS:localhost", -1});
  files.certificate = past.certificate;
  files.private_key = past.key;
  EXPECT_TRUE(live()->current()->has_expired());
}

// ---- handshakes

TEST_F(tls_test, RequestsOfOneConnectionAreAnsweredInTheirOrder) {
  net_rig rig({}, 1, live());
  tls_peer peer(rig.port(), wish());
  ASSERT_TRUE(peer.secure()) << peer.fault();
  EXPECT_EQ(SSL_version(peer.session()), TLS1_3_VERSION);
  peer.send("GET /1 HTTP/1.1\r\nHost: l\r\n\r\nGET /big HTTP/1.1\r\nHost: l\r\n\r\n");
  peer.send("POST /3 HTTP/1.1\r\nHost: l\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello");
  EXPECT_EQ(read_answer(peer)->body, "/1 ");
  EXPECT_EQ(read_answer(peer)->body, std::string(4'000'000, 'b'));
  EXPECT_EQ(read_answer(peer)->body, "/3 hello");
  EXPECT_EQ(peer.read_to_end(), "");
  EXPECT_TRUE(peer.heard_end()) << peer.fault();
  EXPECT_EQ(rig.counters().tls_handshakes.load(), 1);
  EXPECT_EQ(rig.counters().tls_failures.load(), 0);
}

TEST_F(tls_test, VersionsFrom12OnAreSpokenAndOlderOnesRefused) {
  net_rig rig({}, 1, live());
  for (const int version : {TLS1_VERSION, TLS1_1_VERSION}) {
    auto old = wish();
    old.most_version = version;
    const tls_peer peer(rig.port(), old);
    EXPECT_FALSE(peer.secure());
    EXPECT_THAT(peer.fault(), HasSubstr("protocol version"));
  }
  EXPECT_TRUE(net_rig::eventually([&] { return rig.counters().tls_failures.load() == 2; }));
  EXPECT_STREQ(rig.counters().tls_failure.load(), "unsupported protocol");
  auto twelve = wish();
  twelve.most_version = TLS1_2_VERSION;
  tls_peer peer(rig.port(), twelve);
  ASSERT_TRUE(peer.secure()) << peer.fault();
  EXPECT_THAT(std::string(SSL_get_cipher_name(peer.session())), HasSubstr("ECDHE-"));
  EXPECT_EQ(SSL_get_secure_renegotiation_support(peer.session()), 1);
  peer.send(request);
  EXPECT_EQ(read_answer(peer)->status, 200);
  EXPECT_EQ(SSL_SESSION_has_ticket(SSL_get0_session(peer.session())), 0);
}

TEST_F(tls_test, ARenegotiationIsRefused) {
  net_rig rig({}, 1, live());
  auto twelve = wish();
  twelve.most_version = TLS1_2_VERSION;
  tls_peer peer(rig.port(), twelve);
  ASSERT_TRUE(peer.secure());
  ASSERT_EQ(SSL_renegotiate(peer.session()), 1);
  EXPECT_NE(SSL_do_handshake(peer.session()), 1);
}

TEST_F(tls_test, AnotherProtocolThanHttpIsNotAgreedOn) {
  net_rig rig({}, 1, live());
  auto browser = wish();
  browser.protocols = std::string("\x02h2\x08http/1.1", 12);
  EXPECT_EQ(tls_peer(rig.port(), browser).protocol(), "http/1.1");
  auto mail = wish();
  mail.protocols = std::string("\x04imap", 5);
  EXPECT_FALSE(tls_peer(rig.port(), mail).secure());
}

TEST_F(tls_test, APlainRequestIsToldThatThePortSpeaksTls) {
  net_rig rig({}, 1, live());
  raw_peer peer(rig.port());
  ASSERT_TRUE(peer.send(request));
  const auto answer = read_answer(peer);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 400);
  EXPECT_THAT(answer->body, HasSubstr("https://"));
  EXPECT_EQ(peer.read_to_end(), "");
  EXPECT_EQ(rig.counters().tls_failures.load(), 1);
  EXPECT_EQ(rig.seen().count_of("/names"), 0);
}

TEST_F(tls_test, BytesThatAreNoHandshakeEndTheConnection) {
  net_rig rig({}, 1, live());
  raw_peer peer(rig.port());
  ASSERT_TRUE(peer.send(std::string(600, 'x')));
  EXPECT_TRUE(peer.read_to_end().has_value());
  EXPECT_TRUE(net_rig::eventually([&] { return rig.counters().tls_failures.load() == 1; }));
  EXPECT_TRUE(net_rig::eventually([&] { return rig.listener().connections() == 0; }));
}

TEST_F(tls_test, WhoConnectsAndLeavesWithoutAWordHasNotFailed) {
  net_rig rig({}, 1, live());
  raw_peer(rig.port()).close();
  EXPECT_TRUE(net_rig::eventually([&] {
    return rig.counters().connections_accepted.load() == 1 && rig.listener().connections() == 0;
  }));
  EXPECT_EQ(rig.counters().tls_failures.load(), 0);
}

TEST_F(tls_test, ASlowHandshakeIsClosedAsASlowHeadIs) {
  net_limits limits;
  limits.head = milliseconds{200};
  net_rig rig(limits, 1, live());
  raw_peer silent(rig.port());
  raw_peer begun(rig.port());
  ASSERT_TRUE(begun.send(std::string("\x16\x03\x01\x02\x00\x01", 6)));
  EXPECT_TRUE(silent.read_to_end(milliseconds{5'000}).has_value());
  EXPECT_TRUE(begun.read_to_end(milliseconds{5'000}).has_value());
  EXPECT_TRUE(net_rig::eventually([&] { return rig.listener().connections() == 0; }));
  EXPECT_STREQ(rig.counters().tls_failure.load(), "the handshake took too long");
  // After the handshake the request's head has its own time, and no more.
  tls_peer mute(rig.port(), wish());
  ASSERT_TRUE(mute.secure());
  EXPECT_EQ(mute.read_to_end(), "");
}

TEST_F(tls_test, HandshakesCountAmongTheHalfOpenConnections) {
  net_limits limits;
  limits.handshakes = 2;
  net_rig rig(limits, 1, live());
  raw_peer first(rig.port());
  tls_peer second(rig.port(), wish());
  ASSERT_TRUE(second.secure());
  EXPECT_TRUE(net_rig::eventually([&] { return rig.counters().connections_accepted.load() == 2; }));
  EXPECT_FALSE(tls_peer(rig.port(), wish()).secure());
  EXPECT_EQ(rig.counters().connections_refused.load(), 1);
  second.send(request);
  EXPECT_EQ(read_answer(second)->status, 200);
  EXPECT_TRUE(tls_peer(rig.port(), wish()).secure());
}

TEST_F(tls_test, AReplacedCertificateIsThatOfTheNextConnection) {
  const auto tls = live();
  net_rig rig({}, 1, tls);
  tls_peer before(rig.port(), wish());
  const auto next = authority.issue("next", {"server", "DNS:localhost"});
  files = {next.certificate, next.key, {}, client_certificates::none};
  tls->replace(live()->current());
  const tls_peer after(rig.port(), wish());
  EXPECT_GT(before.serial(), 0);
  EXPECT_EQ(after.serial(), before.serial() + 1);
  before.send(request);
  EXPECT_EQ(read_answer(before)->status, 200);
}

// ---- client certificates

TEST_F(tls_test, TheNamesOfAClientCertificateAreItsAlternativeOnesElseTheCommonName) {
  ask_for_certificates(client_certificates::optional);
  EXPECT_EQ(names_seen(authority.issue("a", {"worker-1", ""})), "worker-1;");
  EXPECT_EQ(names_seen(authority.issue(
                "b", {"worker-1", "URI:spiffe://acme/w,DNS:w.example,email:w@example.org"})),
            "spiffe://acme/w;w.example;");
  EXPECT_EQ(names_seen(authority.issue("c", {"", "IP:127.0.0.1"})), "");
  EXPECT_EQ(names_seen(authority.issue("d", {"two\nlines", ""})), "");
  EXPECT_EQ(names_seen({}), "");
}

TEST_F(tls_test, ACertificateOfAnotherSignerOrOutOfItsTimeIsRefused) {
  ask_for_certificates(client_certificates::optional);
  EXPECT_EQ(names_seen(stranger.issue("e", {"worker-1", ""})), "none");
  EXPECT_EQ(names_seen(authority.issue("f", {"worker-1", "", -1})), "none");
}

TEST_F(tls_test, ARequiredCertificateIsNotDoneWithout) {
  ask_for_certificates(client_certificates::required);
  EXPECT_EQ(names_seen({}), "none");
  EXPECT_EQ(names_seen(authority.issue("g", {"worker-1", ""})), "worker-1;");
}

TEST_F(tls_test, ACertificateThatNobodyAskedForIsNotLookedAt) {
  EXPECT_EQ(names_seen(stranger.issue("h", {"worker-1", ""})), "");
}

// ---- sockets

std::string message(std::string words) { return bytes_of({.payload = std::move(words)}); }

void open_socket(tls_peer& peer) {
  ASSERT_TRUE(peer.send(upgrade_request("/ws")));
  ASSERT_EQ(read_answer(peer)->status, 101);
}

TEST_F(tls_test, ASocketAnswersMessagesSmallAndLarge) {
  net_rig rig({}, 1, live());
  tls_peer peer(rig.port(), wish());
  open_socket(peer);
  for (const std::size_t size : {0U, 1U, 125U, 16'384U, 65'536U}) {
    ASSERT_TRUE(peer.send(message(std::string(size, 'm'))));
    EXPECT_EQ(read_frame(peer)->payload, std::string(size, 'm'));
  }
  ASSERT_TRUE(peer.send(message("supersede")));
  EXPECT_EQ(read_close_code(peer), 4001);
  ASSERT_TRUE(peer.send(bytes_of({.opcode = 8, .payload = "\x0f\xa1"})));
  EXPECT_EQ(peer.read_to_end(), "");
  EXPECT_TRUE(peer.heard_end()) << peer.fault();
}

TEST_F(tls_test, AMessageInManyRecordsIsOne) {
  net_rig rig({}, 1, live());
  tls_peer peer(rig.port(), wish());
  open_socket(peer);
  for (const char byte : message("hello")) ASSERT_TRUE(peer.send({&byte, 1}));
  EXPECT_EQ(read_frame(peer)->payload, "hello");
}

TEST_F(tls_test, ASlowReaderIsClosedWith4002OrCutOff) {
  net_limits limits;
  limits.closing = milliseconds{300};
  net_rig rig(limits, 1, live());
  auto slow = wish();
  slow.receive_buffer = 4096;
  tls_peer peer(rig.port(), slow);
  open_socket(peer);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(peer.send(message("flood")));
  ASSERT_TRUE(rig.seen().wait_for("closed"));
  EXPECT_EQ(rig.counters().slow_readers.load(), 1);
  EXPECT_TRUE(net_rig::eventually([&] { return rig.listener().connections() == 0; }));
  // A reader of the same kind that wakes in time hears why.
  tls_peer woken(rig.port(), slow);
  open_socket(woken);
  ASSERT_TRUE(woken.send(message("flood")));
  EXPECT_EQ(read_close_code(woken), 4002);
}

TEST_F(tls_test, AStopEndsWhatIsOpenAndDoesNotWaitForHandshakes) {
  net_rig rig({}, 1, live());
  raw_peer silent(rig.port());
  tls_peer idle(rig.port(), wish());
  tls_peer worker(rig.port(), wish());
  open_socket(worker);
  ASSERT_TRUE(net_rig::eventually([&] { return rig.counters().connections_accepted.load() == 3; }));
  const auto begun = std::chrono::steady_clock::now();
  std::thread reader([&] {
    EXPECT_EQ(read_close_code(worker), 4005);
    worker.send(bytes_of({.opcode = 8, .payload = "\x0f\xa5"}));
    EXPECT_EQ(worker.read_to_end(), "");
    EXPECT_TRUE(worker.heard_end());
    worker.close();
  });
  std::thread other([&] {
    EXPECT_EQ(idle.read_to_end(), "");
    EXPECT_TRUE(idle.heard_end());
    idle.close();
  });
  rig.listener().stop(protocol::close_code::draining, "over", std::chrono::seconds{20});
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds{10});
  reader.join();
  other.join();
}

}  // namespace
}  // namespace leasehold::server
