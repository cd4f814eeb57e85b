// A directory that is not the store it should be: leaseholdd does not start, says in one sentence
// what is wrong and what to do, and leaves the files as they are.
#include <sqlite3.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "faults/scene.hpp"
#include "live_server.hpp"
#include "src/store/schema.hpp"
#include "src/store/sqlite_backup.hpp"

namespace leasehold::e2e {
namespace {

namespace fs = std::filesystem;

void run_sql(const fs::path& file, const char* sql) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(file.c_str(), &db), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(db, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
  sqlite3_close(db);
}

void flip_bit(const fs::path& file, std::uintmax_t at) {
  std::fstream in(file, std::ios::binary | std::ios::in | std::ios::out);
  in.seekg(static_cast<std::streamoff>(at));
  const auto byte = static_cast<char>(in.get() ^ 0x10);
  in.seekp(static_cast<std::streamoff>(at));
  in.put(byte);
}

/// Where a text stands in the file the last time.
std::uintmax_t place_of(const fs::path& file, std::string_view text) {
  const auto at = content_of(file).rfind(text);
  EXPECT_NE(at, std::string::npos) << text;
  return at;
}

struct damage {
  std::string name;
  std::function<void(const fs::path& data, const fs::path& file)> how;
  std::vector<std::string> said;  ///< what is wrong, and the way out
};

const std::vector<damage>& all_damage() {
  static const std::vector<damage> all{
      {"Truncated",
       [](auto&, auto& file) { fs::resize_file(file, fs::file_size(file) / 2); },
       {"damaged", "restore the directory from a backup"}},
      {"CutToNothing",
       [](auto&, auto& file) { fs::resize_file(file, 0); },
       {"does not extend what it was", "--restored-backup"}},
      {"Removed",
       [](auto&, auto& file) { fs::remove(file); },
       {"does not extend what it was", "--restored-backup"}},
      {"BitOfTheHeader",
       [](auto&, auto& file) { flip_bit(file, 3); },
       {"is not a Leasehold store", "name another data directory"}},
      {"BitOfARow",
       [](auto&, auto& file) { flip_bit(file, place_of(file, "work that is done once")); },
       {": row ", "leasehold verify", "backup"}},
      {"BitOfARecord",
       [](auto&, auto& file) {
         run_sql(file,
                 "UPDATE record SET image = CAST(substr(image, 1, 20) || x'07' || "
                 "substr(image, 22) AS BLOB) WHERE lease = 'first'");
       },
       {"the record of lease 'first'", "leasehold verify", "backup"}},
      {"NoDatabase",
       [](auto&, auto& file) { std::ofstream(file, std::ios::trunc) << "a shopping list"; },
       {"is not a Leasehold store", "name another data directory"}},
      {"AnotherProgramsDatabase",
       [](auto& data, auto& file) {
         fs::remove(file);
         fs::remove(data / "head");
         run_sql(file, "CREATE TABLE songs (title TEXT)");
       },
       {"is the database of another program", "name another data directory"}},
      {"NewerSchema",
       [](auto&, auto& file) { run_sql(file, "PRAGMA user_version = 3"); },
       {"was written by a newer version (schema 3, this one reads up to 2)",
        "start that version, or restore a backup"}},
      {"Backup",
       [](auto& data, auto& file) {
         const tests::temporary_directory kept;
         EXPECT_TRUE(std::holds_alternative<storage::backup_report>(
             storage::backup_store({.from = data, .to = kept.path() / "b"})));
         fs::copy_file(kept.path() / "b" / file.filename(), file,
                       fs::copy_options::overwrite_existing);
       },
       {"holds a backup", "--restored-backup"}},
      {"OfAnotherTime",
       [](auto&, auto& file) {
         const tests::temporary_directory other;
         { const tests::scene young(other.path(), std::make_shared<tests::manual_clock>()); }
         fs::copy_file(other.path() / file.filename(), file, fs::copy_options::overwrite_existing);
       },
       {"does not extend what it was", "Put all files back"}},
  };
  return all;
}

class DamagedStore : public testing::TestWithParam<std::size_t> {
 protected:
  DamagedStore() {
    const auto clock = std::make_shared<tests::manual_clock>();
    clock->set({std::chrono::duration_cast<std::chrono::milliseconds>(
                    std::chrono::system_clock::now().time_since_epoch())
                    .count()});
    tests::scene s(data(), clock);
    tests::submit(*s.rig, "first");
    s.rig->checkpoint();
    actors::job_spec spec;
    spec.queue = "q";
    spec.payload = "work that is done once";
    tests::submit(*s.rig, "second", spec);
  }
  [[nodiscard]] fs::path data() const { return kept_.path() / "data"; }
  [[nodiscard]] fs::path file() const { return data() / storage::database_name; }

  program_end start() const {
    const auto log = kept_.path() / "log";
    program_run run(LEASEHOLDD,
                    {"--data", data().string(), "--listen", "127.0.0.1:0", "--log-format", "human"},
                    log);
    const auto code = run.wait();
    return {code.value_or(-1), content_of(log)};
  }

  tests::temporary_directory kept_;
};

TEST_P(DamagedStore, IsRefusedInOneSentenceAndLeftAsItIs) {
  const auto& damage = all_damage()[GetParam()];
  damage.how(data(), file());
  const auto before = fs::exists(file()) ? content_of(file()) : std::string();
  const auto ended = start();
  EXPECT_EQ(ended.exit_code, 1) << ended.output;
  const auto at = ended.output.find("leaseholdd: ");
  ASSERT_NE(at, std::string::npos) << ended.output;
  const auto sentence = ended.output.substr(at);
  EXPECT_EQ(std::ranges::count(sentence, '\n'), 1) << ended.output;
  EXPECT_NE(sentence.find(data().string()), std::string::npos) << sentence;
  for (const auto& part : damage.said) {
    EXPECT_NE(sentence.find(part), std::string::npos) << sentence << "does not say: " << part;
  }
  if (before.empty()) return;
  EXPECT_TRUE(content_of(file()) == before) << "the file was changed";
}

INSTANTIATE_TEST_SUITE_P(Files, DamagedStore, testing::Range(std::size_t{0}, all_damage().size()),
                         [](const testing::TestParamInfo<std::size_t>& with) {
                           return all_damage()[with.param].name;
                         });

}  // namespace
}  // namespace leasehold::e2e
