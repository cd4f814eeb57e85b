// A bit of the database turns over while nobody has it open: the start refuses it, or verify names
// it, or it was one that nobody reads.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <array>
#include <fstream>
#include <iostream>
#include <random>
#include <set>

#include "scene.hpp"
#include "src/store/schema.hpp"
#include "src/store/verify.hpp"
#include "support/faulty_vfs.hpp"
#include "support/stored_log.hpp"

namespace leasehold::tests {
namespace {

namespace fs = std::filesystem;

class FlippedBits : public ::testing::Test {
 protected:
  FlippedBits() {
    scene past(left_.path(), clock());
    past.hold("held");
    past.worker().progress("held", 1, 1, "half");
    for (int i = 0; i < 30; ++i) {
      actors::job_spec spec;
      spec.payload = std::string(200, static_cast<char>('a' + i % 26));
      submit(*past.rig, "job-" + std::to_string(i), spec);
    }
    past.rig->checkpoint();
    past.worker().renew("held", 1, 1);
  }

  static std::shared_ptr<manual_clock> clock() {
    auto made = std::make_shared<manual_clock>();
    made->set(protocol::instant{2'000'000});
    return made;
  }

  /// The pages of the tables that have no hash of their own: what the store says about itself, and
  /// the floors.
  std::set<std::int64_t> pages_without_hash() const {
    std::set<std::int64_t> pages;
    sqlite3* db = nullptr;
    sqlite3_open((left_.path() / storage::database_name).c_str(), &db);
    sqlite3_exec(
        db,
        "SELECT rootpage FROM sqlite_master WHERE name IN ('meta', 'floor', 'cancel_dispatch', "
        "'cancel_dispatch_open', 'dispatch_event', 'process_handle')",
        [](void* into, int, char** text, char**) {
          static_cast<std::set<std::int64_t>*>(into)->insert(std::stoll(text[0]));
          return 0;
        },
        &pages, nullptr);
    sqlite3_close(db);
    return pages;
  }

  enum class end { refused, named, without_effect };

  /// What becomes of a start with one bit of the file turned over.
  end flip(std::int64_t byte, int bit) {
    const temporary_directory parent;
    const auto directory = parent.path() / "data";
    fs::copy(left_.path(), directory, fs::copy_options::recursive);
    std::fstream file(directory / storage::database_name,
                      std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(byte);
    const auto turned = static_cast<char>(file.get() ^ (1 << bit));
    file.seekp(byte);
    file.put(turned);
    file.close();
    scene began(directory, clock());
    if (const auto& refused = began.start_error()) {
      EXPECT_NE(refused->sentence.find(directory.string()), std::string::npos) << refused->sentence;
      return end::refused;
    }
    const auto said = storage::verify_directory(directory, {});
    const auto* report = std::get_if<storage::verify_report>(&said);
    if (report == nullptr || !report->proven()) return end::named;
    EXPECT_EQ(began.outcome(), outcome_) << "byte " << byte;
    EXPECT_EQ(history_of(directory), history_) << "byte " << byte;
    return end::without_effect;
  }

  void SetUp() override {
    const temporary_directory parent;
    const auto directory = parent.path() / "data";
    fs::copy(left_.path(), directory, fs::copy_options::recursive);
    scene began(directory, clock());
    ASSERT_FALSE(began.start_error());
    outcome_ = began.outcome();
    history_ = history_of(directory);
  }

  faulty_vfs disk_;  ///< without a fault: it spares the disk the fsyncs
  temporary_directory left_;
  std::string outcome_;
  std::vector<std::string> history_;
};

TEST_F(FlippedBits, AreRefusedOrNamedOrWithoutEffect) {
  const auto size = static_cast<std::int64_t>(fs::file_size(left_.path() / storage::database_name));
  const auto skipped = pages_without_hash();
  std::mt19937_64 random(1);
  std::array<int, 3> ends{};
  for (int i = 0; i < 300 && !HasFailure(); ++i) {
    // A third of them where most of the content is: at the ends of the pages.
    auto byte = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(size));
    if (i % 3 == 0)
      byte = byte / storage::database_page_bytes * storage::database_page_bytes +
             storage::database_page_bytes - 1 - static_cast<std::int64_t>(random() % 4096);
    if (skipped.contains(byte / storage::database_page_bytes + 1)) continue;
    ++ends[static_cast<std::size_t>(flip(byte, static_cast<int>(random() % 8)))];
  }
  std::cout << ends[0] << " refused, " << ends[1] << " named by verify, " << ends[2]
            << " without effect\n";
  EXPECT_GT(ends[0], 0);
}

}  // namespace
}  // namespace leasehold::tests
