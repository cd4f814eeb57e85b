// Principals of a coordinator that runs: added, taken away, reloaded.
#include <signal.h>
#include <sys/stat.h>

#include <fstream>

#include "stream_peer.hpp"

namespace leasehold::e2e {
namespace {

using protocol::close_code;
using protocol::event_kind;
using protocol::reason;

class access_to : public on_threads {
 protected:
  live_server server{GetParam()};
};
LEASEHOLD_ON_THREADS(access_to);

TEST_P(access_to, ATokenThatWasAddedHoldsFromTheReloadOn) {
  server.add_worker("w3");
  EXPECT_FALSE(stream_peer(server, "w3").upgraded());
  server.signal(SIGHUP);
  ASSERT_TRUE(server.has_logged("\"event\":\"reloaded\""));
  stream_peer worker(server, "w3");
  ASSERT_TRUE(worker.upgraded());
  EXPECT_EQ(worker.hello().holder.value, "w3/" + std::string(32, 'a'));
}

TEST_P(access_to, ARevokedTokenEndsItsSessionAndNoOther) {
  stream_peer revoked(server, "w1");
  revoked.hello();
  revoked.credit(1);
  server.submit("orphan", {{"lease_duration_ms", 3'600'000}});
  ASSERT_TRUE(revoked.offer_of("orphan"));
  revoked.start("orphan", 1);
  stream_peer other(server, "w2", 'b');
  other.hello();

  const auto ran =
      run_leasehold({"token", "revoke", "w1", "--principals", server.principals_file().string()});
  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  server.signal(SIGHUP);
  ASSERT_TRUE(server.has_logged("\"event\":\"reloaded\""));
  revoked.say(revoked.frame(event_kind::renew, "orphan", 1, 1));
  EXPECT_EQ(revoked.close_code(), static_cast<int>(close_code::credential_ended));
  EXPECT_TRUE(stream_peer(server, "w1").upgrade_answer().starts_with("HTTP/1.1 401"));
  EXPECT_EQ(other.tell(other.frame(event_kind::renew, "none", 1, 1)).reason, reason::unknown_lease);
  // A credential that ended says nothing about the work: the lease runs on to its deadline.
  expect_columns(server.job("orphan"), {{"state", "active"}, {"renew_sequence", 0}});
}

TEST_P(access_to, AnIdleSessionOfARevokedTokenEndsBeforeItIsOfferedAnything) {
  stream_peer revoked(server, "w1");
  revoked.hello();
  revoked.credit(1);
  const auto ran =
      run_leasehold({"token", "revoke", "w1", "--principals", server.principals_file().string()});
  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  server.signal(SIGHUP);
  // Neither side says anything: the next heartbeat is a minute away.
  EXPECT_EQ(revoked.close_code(), static_cast<int>(close_code::credential_ended));
  stream_peer other(server, "w2", 'b');
  other.hello();
  other.credit(1);
  server.submit("spared");
  const auto offer = other.offer_of("spared");
  ASSERT_TRUE(offer);
  EXPECT_EQ(offer->standing.gen.value, 1);
  EXPECT_EQ(revoked.waiting<protocol::offer>(), 0);
}

TEST_P(access_to, AnEmptyPrincipalsFileKeepsTheOldOneAndIsNamed) {
  stream_peer worker(server, "w1");
  worker.hello();
  std::ofstream(server.principals_file(), std::ios::trunc).flush();
  server.signal(SIGHUP);
  ASSERT_TRUE(server.has_logged("principals not reloaded; the old ones stay"));
  EXPECT_NE(server.log().find(server.principals_file().string() + " names no principal"),
            std::string::npos)
      << server.log();
  EXPECT_EQ(worker.tell(worker.frame(event_kind::renew, "none", 1, 1)).reason,
            reason::unknown_lease);
  server.submit("still-served");
}

TEST_P(access_to, APrincipalsFileThatOthersCanReachKeepsTheOldOneAndIsNamed) {
  server.add_worker("w3");
  ASSERT_EQ(::chmod(server.principals_file().c_str(), 0640), 0);
  server.signal(SIGHUP);
  ASSERT_TRUE(server.has_logged("principals not reloaded; the old ones stay"));
  EXPECT_NE(server.log().find("mode 0640"), std::string::npos) << server.log();
  EXPECT_NE(server.log().find("chmod 600 " + server.principals_file().string()), std::string::npos);
  EXPECT_FALSE(stream_peer(server, "w3").upgraded());
  EXPECT_TRUE(stream_peer(server, "w1").upgraded());
}

TEST_P(access_to, FilesThatOthersCanWriteEndTheStartAndAreNamed) {
  server.kill();
  const tests::temporary_directory kept;
  for (const auto& file : {server.principals_file(), server.data() / "leasehold.db",
                           server.data() / "operator.token"}) {
    struct stat before {};
    ASSERT_EQ(::stat(file.c_str(), &before), 0) << file;
    ASSERT_EQ(::chmod(file.c_str(), 0660), 0);
    const auto log = kept.path() / file.filename();
    program_run refused(LEASEHOLDD, server.arguments(), log);
    EXPECT_EQ(refused.wait(), 2);
    const auto said = content_of(log);
    EXPECT_NE(said.find(file.string() + " has mode 0660"), std::string::npos) << said;
    EXPECT_NE(said.find("run: chmod "), std::string::npos) << said;
    ASSERT_EQ(::chmod(file.c_str(), before.st_mode & 07777U), 0);
  }
  server.start();
}

TEST_P(access_to, ABadPrincipalsFileKeepsTheOldOneAndNamesTheLine) {
  stream_peer worker(server, "w1");
  worker.hello();
  std::ofstream(server.principals_file(), std::ios::trunc)
      << "[[principal]]\nname = \"w1\"\ntenant = \"default\"\nroles = [\"king\"]\n";
  server.signal(SIGHUP);
  ASSERT_TRUE(server.has_logged("principals not reloaded; the old ones stay"));
  EXPECT_NE(server.log().find("principals.toml, line 4"), std::string::npos) << server.log();
  EXPECT_EQ(worker.tell(worker.frame(event_kind::renew, "none", 1, 1)).reason,
            reason::unknown_lease);
  EXPECT_TRUE(stream_peer(server, "w2", 'b').upgraded());
  server.submit("still-served");
}

TEST_P(access_to, AFirstStartMakesAnOperatorWhoseTokenOnlyItsOwnerReads) {
  const tests::temporary_directory kept;
  const auto data = kept.path() / "fresh";
  program_run first(LEASEHOLDD, {"--data", data.string(), "--listen", "127.0.0.1:0"},
                    kept.path() / "log");
  ASSERT_TRUE(eventually([&] {
    return content_of(kept.path() / "log").find("\"listening\"") != std::string::npos;
  })) << content_of(kept.path() / "log");
  struct stat found {};
  ASSERT_EQ(::stat((data / "operator.token").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777U, 0600U);
  ASSERT_EQ(::stat(data.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777U, 0700U);
  const auto token = content_of(data / "operator.token");
  const auto log = content_of(kept.path() / "log");
  EXPECT_NE(log.find((data / "operator.token").string()), std::string::npos) << log;
  EXPECT_EQ(log.find(token.substr(0, token.find('\n'))), std::string::npos);
  first.signal(SIGTERM);
  EXPECT_EQ(first.wait(), 0);
}

}  // namespace
}  // namespace leasehold::e2e
