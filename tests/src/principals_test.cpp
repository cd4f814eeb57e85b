#include "src/principals.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <thread>

#include "src/token_file.hpp"

namespace leasehold::server {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

class principals_test : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::path(testing::TempDir()) /
                 (std::string("principals_") +
                  testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }

  fs::path file() const { return directory_ / "principals.toml"; }
  static unsigned mode(const fs::path& of) {
    struct stat facts {};
    EXPECT_EQ(stat(of.c_str(), &facts), 0) << of;
    return facts.st_mode & 0777;
  }
  static std::string fault(const std::string& content) {
    auto parsed = parse_principals(content, "p.toml");
    const auto* f = std::get_if<principals_fault>(&parsed);
    return f == nullptr ? "was not refused" : f->sentence;
  }
  static std::string read_line(const fs::path& of) {
    std::ifstream in(of);
    std::string line;
    std::getline(in, line);
    return line;
  }
  template <class T, class V>
  static T good(V outcome) {
    const auto* f = std::get_if<token_fault>(&outcome);
    EXPECT_EQ(f, nullptr) << (f != nullptr ? f->sentence : "");
    return f == nullptr ? std::get<T>(std::move(outcome)) : T{};
  }

  fs::path directory_;
};

TEST_F(principals_test, TheFirstStartMakesADirectoryAndATokenThatOnlyTheOwnerReads) {
  const auto made = good<first_start>(prepare_directory(directory_, file(), false));
  EXPECT_TRUE(made.made_directory);
  ASSERT_TRUE(made.operator_token);
  EXPECT_EQ(mode(directory_), 0700U);
  EXPECT_EQ(mode(file()), 0600U);
  EXPECT_EQ(mode(*made.operator_token), 0600U);

  auto read = read_principals(file());
  ASSERT_TRUE(std::holds_alternative<principal_set>(read));
  const auto* who = std::get<principal_set>(read).find_by_token(read_line(*made.operator_token));
  ASSERT_NE(who, nullptr);
  EXPECT_TRUE(who->who.has(actors::role::operator_));
  EXPECT_TRUE(who->who.has(actors::role::client));
  EXPECT_FALSE(who->who.has(actors::role::worker));
  EXPECT_TRUE(who->who.may_use_queue("any"));
}

TEST_F(principals_test, TheSecondStartMakesNothing) {
  good<first_start>(prepare_directory(directory_, file(), false));
  const std::string token = read_line(directory_ / "operator.token");
  const auto again = good<first_start>(prepare_directory(directory_, file(), false));
  EXPECT_FALSE(again.made_directory);
  EXPECT_FALSE(again.operator_token);
  EXPECT_EQ(read_line(directory_ / "operator.token"), token);
}

TEST_F(principals_test, APrincipalsFileOfOnesOwnIsNeverMade) {
  const auto made = good<first_start>(prepare_directory(directory_, directory_ / "own.toml", true));
  EXPECT_FALSE(made.operator_token);
  EXPECT_FALSE(fs::exists(directory_ / "own.toml"));
}

TEST_F(principals_test, ADirectoryThatOthersCanWriteIsRefused) {
  good<first_start>(prepare_directory(directory_, file(), false));
  for (const mode_t open : {0720U, 0702U, 0777U}) {
    ASSERT_EQ(chmod(directory_.c_str(), open), 0);
    const auto refused = prepare_directory(directory_, file(), false);
    ASSERT_TRUE(std::holds_alternative<token_fault>(refused)) << std::oct << open;
    EXPECT_THAT(std::get<token_fault>(refused).sentence, HasSubstr("chmod go-w"));
  }
  ASSERT_EQ(chmod(directory_.c_str(), 0755), 0);
  good<first_start>(prepare_directory(directory_, file(), false));
}

TEST_F(principals_test, AFileInTheDirectoryThatOthersCanWriteIsRefused) {
  good<first_start>(prepare_directory(directory_, file(), false));
  const auto store = directory_ / "leasehold.db";
  std::ofstream(store) << "x";
  for (const mode_t open : {0620U, 0602U, 0666U}) {
    ASSERT_EQ(chmod(store.c_str(), open), 0);
    const auto refused = prepare_directory(directory_, file(), false);
    ASSERT_TRUE(std::holds_alternative<token_fault>(refused)) << std::oct << open;
    EXPECT_THAT(std::get<token_fault>(refused).sentence, HasSubstr("chmod go-w " + store.string()));
  }
  ASSERT_EQ(chmod(store.c_str(), 0644), 0);
  good<first_start>(prepare_directory(directory_, file(), false));
}

TEST_F(principals_test, PrincipalsWithoutAStoreAreNoticedButNotAtTheFirstStart) {
  EXPECT_FALSE(good<first_start>(prepare_directory(directory_, file(), false)).store_is_gone);
  EXPECT_TRUE(good<first_start>(prepare_directory(directory_, file(), false)).store_is_gone);
  std::ofstream(directory_ / "leasehold.db") << "x";
  ASSERT_EQ(chmod((directory_ / "leasehold.db").c_str(), 0600), 0);
  EXPECT_FALSE(good<first_start>(prepare_directory(directory_, file(), false)).store_is_gone);
}

TEST_F(principals_test, ANameThatCannotBeOneIsTheRequestsFaultAndMakesNoFile) {
  fs::create_directory(directory_);
  const std::vector<token_request> wrong{
      {.name = "", .roles = {actors::role::worker}},
      {.name = "a/b", .roles = {actors::role::worker}},
      {.name = "a", .tenant = "t t", .roles = {actors::role::worker}},
      {.name = "a", .roles = {actors::role::worker}, .queues = {"q", "q/r"}}};
  for (const token_request& request : wrong) {
    const auto refused = add_token(file(), request);
    ASSERT_TRUE(std::holds_alternative<token_fault>(refused)) << request.name;
    EXPECT_TRUE(std::get<token_fault>(refused).is_in_the_request);
    EXPECT_THAT(std::get<token_fault>(refused).sentence, Not(HasSubstr("line")));
  }
  EXPECT_FALSE(fs::exists(file()));
}

TEST_F(principals_test, AFileThatOthersMayReadIsRefused) {
  good<first_start>(prepare_directory(directory_, file(), false));
  for (const mode_t open : {0640U, 0604U, 0620U, 0660U}) {
    ASSERT_EQ(chmod(file().c_str(), open), 0);
    auto read = read_principals(file());
    ASSERT_TRUE(std::holds_alternative<principals_fault>(read));
    EXPECT_THAT(std::get<principals_fault>(read).sentence, HasSubstr("chmod 600"));
  }
}

TEST_F(principals_test, TheFileKeepsNoToken) {
  fs::create_directories(directory_);
  const auto added = good<added_token>(
      add_token(file(), {.name = "w", .roles = {actors::role::worker}, .queues = {"build"}}));
  std::ifstream in(file());
  const std::string content((std::istreambuf_iterator<char>(in)), {});
  EXPECT_THAT(content, Not(HasSubstr(added.token)));
  EXPECT_THAT(content, HasSubstr(to_hex(hash_token(added.token))));
  EXPECT_EQ(added.name, token_name(hash_token(added.token)));
}

TEST_F(principals_test, ProgramsAreKeptAndGrantTheirNamesAlone) {
  fs::create_directories(directory_);
  const auto made = good<added_token>(
      add_token(file(), {.name = "c", .roles = {actors::role::client}, .programs = {"p", "q"}}));
  const auto known = std::get<principal_set>(read_principals(file()));
  const actors::principal who = known.find_by_token(made.token)->who;
  EXPECT_TRUE(who.may_use_program("p"));
  EXPECT_TRUE(who.may_use_program("q"));
  EXPECT_FALSE(who.may_use_program("r"));
  EXPECT_FALSE(who.may_use_program("*"));
  EXPECT_FALSE(who.may_use_program(""));
}

TEST_F(principals_test, AnAuthenticationHoldsNoLongerThanItsProgramsStay) {
  fs::create_directories(directory_);
  const auto made = good<added_token>(
      add_token(file(), {.name = "c", .roles = {actors::role::client}, .programs = {"p"}}));
  auto known = std::get<principal_set>(read_principals(file()));
  const actors::principal before = known.entries.front().who;
  EXPECT_TRUE(known.still_holds(before, {hash_token(made.token), ""}));
  known.entries.front().who.programs = {"q"};
  EXPECT_FALSE(known.still_holds(before, {hash_token(made.token), ""}));
}

TEST_F(principals_test, ASecondTokenRotatesTheFirstOut) {
  fs::create_directories(directory_);
  const token_request request{.name = "w", .roles = {actors::role::worker}};
  const auto first = good<added_token>(add_token(file(), request));
  const auto second = good<added_token>(add_token(file(), request));
  EXPECT_EQ(good<std::vector<token_line>>(list_tokens(file())).size(), 2U);
  EXPECT_EQ(good<std::int64_t>(revoke_token(file(), "w", first.name)), 1);
  auto read = read_principals(file());
  EXPECT_EQ(std::get<principal_set>(read).find_by_token(first.token), nullptr);
  EXPECT_NE(std::get<principal_set>(read).find_by_token(second.token), nullptr);
  EXPECT_EQ(good<std::int64_t>(revoke_token(file(), "w", "")), 1);
  EXPECT_TRUE(good<std::vector<token_line>>(list_tokens(file())).empty());
}

TEST_F(principals_test, TokensThatAreAddedAtOnceAreAllKept) {
  fs::create_directories(directory_);
  constexpr int at_once = 8;
  std::vector<std::thread> adding;
  adding.reserve(at_once);
  for (int i = 0; i < at_once; ++i) {
    adding.emplace_back([this, i] {
      const auto added =
          add_token(file(), {.name = "w" + std::to_string(i), .roles = {actors::role::worker}});
      EXPECT_TRUE(std::holds_alternative<added_token>(added));
    });
  }
  for (auto& thread : adding) thread.join();
  EXPECT_EQ(good<std::vector<token_line>>(list_tokens(file())).size(),
            static_cast<std::size_t>(at_once));
}

TEST_F(principals_test, AnotherTenantOrRoleForAKnownNameIsRefused) {
  fs::create_directories(directory_);
  good<added_token>(add_token(file(), {.name = "w", .roles = {actors::role::worker}}));
  EXPECT_TRUE(std::holds_alternative<token_fault>(
      add_token(file(), {.name = "w", .tenant = "other", .roles = {actors::role::worker}})));
  EXPECT_TRUE(std::holds_alternative<token_fault>(
      add_token(file(), {.name = "w", .roles = {actors::role::operator_}})));
  EXPECT_TRUE(std::holds_alternative<token_fault>(
      add_token(file(), {.name = "a/b", .roles = {actors::role::worker}})));
  EXPECT_TRUE(std::holds_alternative<token_fault>(revoke_token(file(), "nobody", "")));
  EXPECT_TRUE(std::holds_alternative<token_fault>(revoke_token(file(), "w", "000000000000")));
}

TEST_F(principals_test, EveryFaultNamesTheLine) {
  const std::string hash(64, 'a');
  const std::string good_entry =
      "[[principal]]\nname = \"w\"\ntenant = \"t\"\nroles = [\"worker\"]\ntokens = [\"" + hash +
      "\"]\n";
  ASSERT_EQ(fault(good_entry), "was not refused");
  EXPECT_THAT(fault("[[principal]]\nname = \"w\"\nroles = [\"worker\"]\n"), HasSubstr("tenant"));
  EXPECT_THAT(fault("[[principal]]\nname = \"a/b\"\n"),
              AllOf(HasSubstr("line 2"), HasSubstr("name")));
  EXPECT_THAT(fault("[[principal]]\nname = \"w\"\ntenant = \"t\"\nroles = [\"king\"]\n"),
              AllOf(HasSubstr("line 4"), HasSubstr("king")));
  EXPECT_THAT(fault("[[principal]]\nname = \"w\"\ntenant = \"t\"\nroles = []\n"),
              HasSubstr("roles"));
  EXPECT_THAT(fault("[[principal]]\nnmae = \"w\"\n"),
              AllOf(HasSubstr("line 2"), HasSubstr("name?")));
  EXPECT_THAT(fault(good_entry + good_entry), HasSubstr("stands twice"));
  EXPECT_THAT(fault(good_entry + "max_leases = 0\n"),
              AllOf(HasSubstr("line 6"), HasSubstr("from 1")));
  EXPECT_THAT(fault(good_entry + "queues = [\"a b\"]\n"), HasSubstr("line 6"));
  EXPECT_THAT(fault(good_entry + "queues = \"a\"\n"), HasSubstr("list"));
  EXPECT_THAT(fault("[principal]\n"), Not(HasSubstr("terminate")));
  EXPECT_THAT(fault("other = 1\n"), HasSubstr("[[principal]]"));
  EXPECT_THAT(fault("[[principal]\n"), HasSubstr("line 1"));
}

TEST_F(principals_test, ATokenPutWhereItsHashBelongsIsNotRepeated) {
  EXPECT_THAT(fault("[[principal]]\nname = \"w\"\ntenant = \"t\"\nroles = [\"worker\"]\n"
                    "tokens = [\"lh_secret\"]\n"),
              AllOf(HasSubstr("line 5"), Not(HasSubstr("lh_secret"))));
}

TEST_F(principals_test, ACertificateNameIsKeptAndStandsOnce) {
  const token_request asked{
      .name = "builder", .roles = {actors::role::worker}, .certificate = "spiffe://acme/\"b\""};
  fs::create_directory(directory_);
  EXPECT_EQ(good<added_token>(add_token(file(), asked)).token, "");
  auto again = asked;
  again.name = "other";
  EXPECT_TRUE(std::holds_alternative<token_fault>(add_token(file(), again)));
  auto wrong = asked;
  wrong.certificate = "two\nlines";
  EXPECT_TRUE(std::get<token_fault>(add_token(file(), wrong)).is_in_the_request);
  // The last token goes and the certificate stays, until the principal itself is revoked.
  const auto token =
      good<added_token>(add_token(file(), {.name = "builder", .roles = {actors::role::worker}}));
  good<std::int64_t>(revoke_token(file(), "builder", token.name));
  const auto kept = read_principals(file());
  const auto* builder = std::get<principal_set>(kept).find("builder");
  ASSERT_NE(builder, nullptr);
  EXPECT_EQ(builder->certificate, asked.certificate);
  good<std::int64_t>(revoke_token(file(), "builder", ""));
  const auto after = read_principals(file());
  EXPECT_EQ(std::get<principal_set>(after).find("builder"), nullptr);
}

TEST_F(principals_test, ACertificateThatNamesTwoPrincipalsNamesNobody) {
  principal_set all;
  all.entries.push_back({.certificate = "a"});
  all.entries.push_back({.certificate = "b"});
  all.entries.push_back({});
  EXPECT_EQ(all.find_by_certificate({"x", "a"}), all.entries.data());
  EXPECT_EQ(all.find_by_certificate({"a", "b"}), nullptr);
  EXPECT_EQ(all.find_by_certificate({"A"}), nullptr);
  EXPECT_EQ(all.find_by_certificate({""}), nullptr);
  EXPECT_EQ(all.find_by_certificate({}), nullptr);
}

TEST_F(principals_test, AProofHoldsAsLongAsAllOfIt) {
  principal_set all;
  principal_entry& entry = all.entries.emplace_back();
  entry.who.name = "p";
  entry.tokens = {hash_token("t")};
  entry.certificate = "c";
  const auto who = entry.who;
  const credential_proof token{hash_token("t"), ""};
  const credential_proof certificate{std::nullopt, "c"};
  const credential_proof both{hash_token("t"), "c"};
  for (const auto& by : {token, certificate, both}) EXPECT_TRUE(all.still_holds(who, by));
  EXPECT_FALSE(all.still_holds(who, {})) << "nothing proves nothing";
  all.entries[0].certificate = "";
  EXPECT_TRUE(all.still_holds(who, token));
  for (const auto& by : {certificate, both}) EXPECT_FALSE(all.still_holds(who, by));
  all.entries[0].certificate = "c";
  all.entries[0].tokens.clear();
  EXPECT_TRUE(all.still_holds(who, certificate));
  for (const auto& by : {token, both}) EXPECT_FALSE(all.still_holds(who, by));
}

TEST_F(principals_test, AReplacedSetIsSeenAtOnceAndRaisesTheVersion) {
  principal_set before;
  before.entries.push_back({{}, {hash_token("old")}});
  principal_registry registry(before);
  const auto held = registry.current();
  const auto version = registry.version();
  registry.replace({});
  EXPECT_GT(registry.version(), version);
  EXPECT_EQ(registry.current()->find_by_token("old"), nullptr);
  EXPECT_NE(held->find_by_token("old"), nullptr);
}

TEST_F(principals_test, EveryTokenIsComparedWhereverTheMatchStands) {
  principal_set all;
  for (int i = 0; i < 50; ++i) {
    principal_entry e;
    e.who.name = "p" + std::to_string(i);
    e.tokens = {hash_token("a" + std::to_string(i)), hash_token("b" + std::to_string(i))};
    all.entries.push_back(e);
  }
  EXPECT_EQ(all.find_by_token("a0")->who.name, "p0");
  EXPECT_EQ(all.find_by_token("b49")->who.name, "p49");
  EXPECT_EQ(all.find_by_token("a50"), nullptr);
  EXPECT_EQ(all.find_by_token(""), nullptr);
}

TEST(bearer, IsReadOnlyInItsPlainForm) {
  EXPECT_EQ(bearer_token("Bearer abc"), "abc");
  EXPECT_EQ(bearer_token("bEARER abc"), "abc");
  for (const char* bad : {"", "Bearer", "Bearer ", "Basic abc", "Bearer a b", "Bearer a,Bearer b",
                          "Bearer\tabc", "Bearer a\x01"}) {
    EXPECT_EQ(bearer_token(bad), std::nullopt) << bad;
  }
  EXPECT_EQ(bearer_token("Bearer " + std::string(513, 'a')), std::nullopt);
}

TEST(tokens, AreLongRandomAndNeverEqual) {
  const auto a = make_token();
  const auto b = make_token();
  ASSERT_TRUE(a && b);
  EXPECT_NE(*a, *b);
  EXPECT_EQ(a->size(), 3U + 43U);
  EXPECT_EQ(hash_from_hex(to_hex(hash_token(*a))), hash_token(*a));
  EXPECT_EQ(to_hex(hash_token("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace leasehold::server
