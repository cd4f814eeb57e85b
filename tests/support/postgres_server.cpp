#include "support/postgres_server.hpp"

#include <gtest/gtest.h>
#include <libpq-fe.h>
#include <signal.h>
#include <sys/shm.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <utility>

#include "support/postgres_programs.hpp"

namespace leasehold::tests {

namespace fs = std::filesystem;

namespace {

constexpr auto owner = "sandbox";

/// The data of a server that was never started, made once for all tests of a build: initdb takes
/// longer than most of them.
const fs::path& fresh_data() {
  static const fs::path made = [] {
    fs::path kept = LEASEHOLD_BINARY_DIR "/fresh-postgres";
    if (fs::exists(kept)) return kept;
    const auto& programs = postgres_programs::of_this_machine();
    const temporary_directory place;
    programs.give(place.path());
    const auto log = place.path() / "log";
    auto initdb = programs.run(programs.path_of("initdb"),
                               {"-D", (place.path() / "data").string(), "-U", owner, "-A", "trust",
                                "-E", "UTF8", "--locale=C", "--no-sync", "--wal-segsize=1"},
                               log);
    EXPECT_EQ(initdb->wait(std::chrono::minutes{2}), 0) << e2e::content_of(log);
    // Whoever is first has made it for those who did the same meanwhile.
    const fs::path own = kept.string() + "-" + std::to_string(::getpid());
    fs::copy(place.path() / "data", own, fs::copy_options::recursive);
    std::error_code another_was_first;
    fs::rename(own, kept, another_was_first);
    if (another_was_first) fs::remove_all(own);
    return kept;
  }();
  return made;
}

/// The parent of a process; 0 when it has ended.
pid_t parent_of(pid_t process) {
  std::ifstream in("/proc/" + std::to_string(process) + "/stat");
  std::string line;
  std::getline(in, line);
  // The name, in brackets, may hold anything.
  const auto name_end = line.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream rest(line.substr(name_end + 1));
  std::string state;
  pid_t parent = 0;
  rest >> state >> parent;
  return state == "Z" ? 0 : parent;
}

using session = std::unique_ptr<PGconn, decltype(&PQfinish)>;
using answer = std::unique_ptr<PGresult, decltype(&PQclear)>;

session connect(const std::string& url) {
  session made(PQconnectdb(url.c_str()), &PQfinish);
  PQsetNoticeProcessor(
      made.get(), [](void*, const char*) {}, nullptr);
  return made;
}

}  // namespace

postgres_server::postgres_server(settings chosen)
    : settings_{{"listen_addresses", ""},  {"fsync", "off"},
                {"max_connections", "32"}, {"shared_buffers", "4MB"},
                {"max_wal_size", "64MB"},  {"dynamic_shared_memory_type", "mmap"},
                {"log_statement", "none"}} {
  for (auto& [name, value] : chosen) settings_[name] = value;
  fs::copy(fresh_data(), data(), fs::copy_options::recursive);
  postgres_programs::of_this_machine().give(place_.path());
  start();
}

postgres_server::~postgres_server() {
  if (process_ && runs()) stop_immediately();
}

void postgres_server::start() {
  const auto& programs = postgres_programs::of_this_machine();
  std::vector<std::string> arguments{"-D", data().string(), "-k", directory().string(),
                                     "-p", "5432"};
  for (const auto& [name, value] : settings_) {
    arguments.insert(arguments.end(), {"-c", name + "=" + value});
  }
  process_ = programs.run(programs.path_of("postgres"), std::move(arguments), log_file(), "QUIT");
  EXPECT_TRUE(eventually([this] { return PQping(url().c_str()) == PQPING_OK || !runs(); }) &&
              runs())
      << log();
}

void postgres_server::end_with(int signal) {
  // One that stands still would not hear of it.
  go_on();
  process_->signal(signal);
  EXPECT_TRUE(process_->wait()) << log();
}

void postgres_server::kill() {
  process_->stand_still();
  const auto all = processes();
  for (const auto each : all) ::kill(each, SIGKILL);
  EXPECT_EQ(process_->wait(), 128 + SIGKILL);
  EXPECT_TRUE(eventually(
      [&] { return std::ranges::all_of(all, [](pid_t each) { return parent_of(each) == 0; }); }));
  // The memory that says to another start that somebody is still there: its key and id end a line.
  std::ifstream in(data() / "postmaster.pid");
  std::string line;
  for (int i = 0; i < 7; ++i) std::getline(in, line);
  std::istringstream memory(line);
  long key = 0;
  int id = -1;
  if (memory >> key >> id) ::shmctl(id, IPC_RMID, nullptr);
}

void postgres_server::stand_still() {
  // The first one stands before the others are looked for: it makes no new one meanwhile.
  process_->stand_still();
  for (const auto each : processes()) ::kill(each, SIGSTOP);
}

void postgres_server::go_on() {
  for (const auto each : processes()) ::kill(each, SIGCONT);
}

std::vector<pid_t> postgres_server::processes() const {
  std::vector<pid_t> found{process_->id()};
  for (const auto& each : fs::directory_iterator("/proc")) {
    pid_t process = 0;
    std::istringstream name(each.path().filename().string());
    if (name >> process && parent_of(process) == process_->id()) found.push_back(process);
  }
  return found;
}

void postgres_server::make_database(const std::string& name, const std::string& like) {
  EXPECT_TRUE(execute("CREATE DATABASE " + name + " TEMPLATE " + like));
}

void postgres_server::drop_database(const std::string& name) {
  EXPECT_TRUE(execute("DROP DATABASE " + name + " WITH (FORCE)"));
}

bool postgres_server::execute(const std::string& statements, const std::string& database) const {
  const auto made = connect(url(database));
  const answer said(PQexec(made.get(), statements.c_str()), &PQclear);
  const auto status = PQresultStatus(said.get());
  return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

std::string postgres_server::value(const std::string& query, const std::string& database) const {
  const auto made = connect(url(database));
  const answer said(PQexec(made.get(), query.c_str()), &PQclear);
  return PQntuples(said.get()) == 1 ? PQgetvalue(said.get(), 0, 0) : "";
}

std::string postgres_server::url(const std::string& database, const fs::path& through) const {
  const auto& host = through.empty() ? directory() : through;
  return std::string("postgres://") + owner + "@/" + database + "?host=" + host.string() +
         "&port=5432";
}

}  // namespace leasehold::tests
