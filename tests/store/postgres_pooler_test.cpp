// Behind pgbouncer, which does not run as root either: then it runs as postgres.
#include <gmock/gmock.h>
#include <pwd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "support/eventually.hpp"
#include "tests/store/postgres_scene.hpp"
#include "tests/support/temporary_directory.hpp"

namespace leasehold::tests {
namespace {

using kind = actors::store_error::kind;

/// A pgbouncer before the sandbox's server.
class pooler {
 public:
  pooler(const std::string& mode, int size) {
    std::ofstream(place_.path() / "pgbouncer.ini")
        << "[databases]\n* = host=" << std::getenv("PGHOST") << " port=5432 user=sandbox\n"
        << "[pgbouncer]\nlisten_addr =\nlisten_port = 6432\nauth_type = any\n"
        << "unix_socket_dir = " << place_.path().string() << "\npool_mode = " << mode
        << "\ndefault_pool_size = " << size << "\n";
    const passwd* owner = ::getuid() == 0 ? ::getpwnam("postgres") : nullptr;
    if (owner != nullptr) {
      std::filesystem::permissions(place_.path(), std::filesystem::perms::all);
    }
    id_ = ::fork();
    if (id_ == 0) run(owner);
    EXPECT_TRUE(eventually([this] {
      return std::filesystem::exists(place_.path() / ".s.PGSQL.6432");
    })) << "is pgbouncer installed?";
  }
  ~pooler() {
    ::kill(id_, SIGTERM);
    ::kill(id_, SIGINT);
    ::waitpid(id_, nullptr, 0);
  }
  pooler(const pooler&) = delete;
  pooler& operator=(const pooler&) = delete;

  [[nodiscard]] storage::postgres_access access() const {
    return {
        "postgresql:///postgres?port=6432&user=sandbox&host=" + place_.path().string(), "test", {}};
  }

 private:
  [[noreturn]] void run(const passwd* owner) const {
    if (owner != nullptr && (::setgid(owner->pw_gid) != 0 || ::setuid(owner->pw_uid) != 0)) {
      ::_exit(126);
    }
    for (const char* program : {"/usr/sbin/pgbouncer", "pgbouncer"}) {
      ::execlp(program, "pgbouncer", "-q", (place_.path() / "pgbouncer.ini").c_str(), nullptr);
    }
    ::_exit(127);
  }

  temporary_directory place_;
  pid_t id_ = -1;
};

actors::store_error refusal_behind(const std::string& mode, int size) {
  const pooler between(mode, size);
  const auto opened = storage::postgres_connection::open(between.access());
  if (const auto* fault = std::get_if<actors::store_error>(&opened)) return *fault;
  ADD_FAILURE() << "a pool by " << mode << "s of size " << size << " was not refused";
  return {};
}

TEST(PostgresPooler, ThatGivesEachTransactionAnotherSessionIsRefused) {
  for (const int size : {1, 2, 20}) {
    const auto fault = refusal_behind("transaction", size);
    EXPECT_EQ(fault.what, kind::foreign) << size;
    EXPECT_THAT(fault.sentence, ::testing::HasSubstr("pooler")) << size;
  }
}

TEST(PostgresPooler, ThatTakesTransactionsApartIsRefused) {
  EXPECT_EQ(refusal_behind("statement", 20).what, kind::foreign);
}

TEST(PostgresPooler, WithOneSessionIsRefused) {
  EXPECT_EQ(refusal_behind("session", 1).what, kind::foreign);
}

TEST(PostgresPooler, ThatGivesASessionToUsAloneIsUsed) {
  empty_database();
  const pooler between("session", 20);
  storage::postgres_options how;
  how.access = between.access();
  const auto store = open_postgres(how);
  EXPECT_EQ(expect(commit(*store, batch_of({renew_row("a", 1)}))).first_row.value, 1);
  EXPECT_EQ(expect(store->rows_from({1}, 10)).size(), 1U);
}

}  // namespace
}  // namespace leasehold::tests
