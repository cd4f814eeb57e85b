// A disk without room for evidence: reads go on, nothing is granted, and it recovers by itself.
#include "stream_peer.hpp"

namespace leasehold::e2e {
namespace {

using protocol::event_kind;
using protocol::reason;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

bool may_mount() {
  const tests::temporary_directory kept;
  program_run tries("/bin/sh", {"-c", "exec unshare -rm mount -t tmpfs none /mnt"},
                    kept.path() / "said");
  return tries.wait() == 0;
}

/// Becomes leaseholdd on a small file system of its own, most of which is taken by one file.
/// $0 is where it is mounted; the data directory is found in the arguments.
constexpr std::string_view on_a_small_disk = R"(
set -e
room=$0 data=
for word; do
  [ "$before" != --data ] || data=$word
  before=$word
done
mount -t tmpfs -o size=8m none "$room"
mkdir -m 700 "$room/data"
cp -a "$data/." "$room/data"
mount --bind "$room/data" "$data"
head -c 4194304 /dev/zero > "$room/filler"
exec "$@"
)";

class full_disk : public on_threads {
 protected:
  bool mounted = may_mount();
  tests::temporary_directory room;
  live_server server{
      GetParam(),
      {},
      {},
      {},
      mounted ? std::vector<std::string>{"/usr/bin/env", "unshare", "-rm", "/bin/sh", "-c",
                                         std::string(on_a_small_disk), room.path().string()}
              : std::vector<std::string>{}};

  /// A path as the server sees it.
  [[nodiscard]] std::filesystem::path of_server(const std::filesystem::path& path) const {
    return "/proc/" + std::to_string(server.process()) + "/root" + path.string();
  }

  /// Expects that `leasehold verify` proves everything, on the file system that the server sees.
  void expect_proven_there() {
    if (!mounted) {
      expect_proven(server);
      return;
    }
    const auto output = room.path() / "verified";
    program_run verify(
        "/usr/bin/env",
        {"nsenter", "--target", std::to_string(server.process()), "--user", "--mount",
         "--preserve-credentials", LEASEHOLD, "verify", "--data", server.data().string()},
        output);
    EXPECT_EQ(verify.wait(), 0) << content_of(output);
  }

  /// Submits until there is no room; that answer.
  api_answer fill() {
    // Without a file system of its own: no file may grow by much.
    if (!mounted) server.limit(RLIMIT_FSIZE, server.log().size() + (std::size_t{1} << 20));
    api_answer said;
    for (int i = 0; i < 1000; ++i) {
      said = server.post("/v1/jobs", {{"queue", "idle"}, {"payload", std::string(60'000, 'x')}});
      if (said.status != 201) break;
    }
    return said;
  }
  void make_room() {
    if (mounted) {
      EXPECT_TRUE(std::filesystem::remove(of_server(room.path() / "filler")));
    } else {
      server.limit(RLIMIT_FSIZE, RLIM_INFINITY);
    }
  }
};
LEASEHOLD_ON_THREADS(full_disk);

TEST_P(full_disk, EndsGrantsAndNotReadsUntilThereIsRoom) {
  stream_peer worker(server, "w1");
  worker.hello();
  worker.credit(1);
  server.submit("held", {{"lease_duration_ms", 3'600'000}});
  ASSERT_TRUE(worker.offer_of("held"));
  worker.start("held", 1);
  server.submit("waiting");

  const auto refused = fill();
  EXPECT_EQ(refused.status, 503) << refused.text;
  EXPECT_EQ(refused.body.at("reason"), "store_unavailable");
  // What is smaller than a job may still fit, until that does not either.
  std::int64_t renews = 0;
  auto last = reason::renewed;
  while (last == reason::renewed && renews < 10'000) {
    last = worker.tell(worker.frame(event_kind::renew, "held", 1, ++renews)).reason;
  }
  EXPECT_EQ(last, reason::store_unavailable);
  const auto full_since = steady_clock::now();
  EXPECT_TRUE(eventually([&] { return server.get("/readyz").status == 503; }));
  EXPECT_LT(steady_clock::now() - full_since, milliseconds{2000});
  const auto renewal = worker.frame(event_kind::renew, "held", 1, renews);
  // A grant would need evidence.
  worker.credit(2);
  EXPECT_EQ(worker.tell(renewal).reason, reason::store_unavailable);
  expect_columns(server.job("held"), {{"state", "active"}});
  const auto waiting = server.job("waiting");
  EXPECT_EQ(waiting.at("generation"), 0);
  EXPECT_FALSE(server.evidence("held").empty());
  EXPECT_EQ(server.get("/healthz", "").status, 200);
  EXPECT_EQ(worker.waiting<protocol::offer>(), 0);

  make_room();
  EXPECT_TRUE(eventually([&] { return server.get("/readyz").status == 200; }));
  EXPECT_TRUE(server.has_logged("\"event\":\"the store takes writes again\""));
  EXPECT_TRUE(worker.offer_of("waiting"));
  EXPECT_EQ(worker.tell(renewal).reason, reason::renewed);
  worker.start("waiting", 1);
  server.submit("afterwards");
  expect_proven_there();
}

}  // namespace
}  // namespace leasehold::e2e
