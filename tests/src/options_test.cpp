#include "src/options.hpp"

#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "src/config_file.hpp"
#include "src/config_keys.hpp"
#include "src/config_text.hpp"
#include "src/config_units.hpp"

namespace leasehold::server {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class options_test : public testing::Test {
 protected:
  std::string write(const std::string& content) {
    const auto path = std::filesystem::path(testing::TempDir()) /
                      (std::string("options_") +
                       testing::UnitTest::GetInstance()->current_test_info()->name() + ".toml");
    std::ofstream(path) << content;
    return path.string();
  }
  static options good(std::vector<std::string> arguments, environment variables = {}) {
    auto loaded = load_options(std::move(arguments), std::move(variables));
    const auto* end = std::get_if<say_and_exit>(&loaded);
    EXPECT_EQ(end, nullptr) << (end != nullptr ? end->text : "");
    return end != nullptr ? options{} : std::get<invocation>(loaded).chosen;
  }
  static std::string refused(std::vector<std::string> arguments, environment variables = {}) {
    auto loaded = load_options(std::move(arguments), std::move(variables));
    const auto* end = std::get_if<say_and_exit>(&loaded);
    if (end == nullptr) return "was not refused";
    EXPECT_EQ(end->exit_code, exit_bad_options);
    EXPECT_EQ(std::ranges::count(end->text, '\n'), 1) << end->text;
    return end->text;
  }
};

TEST_F(options_test, WithoutAnySourceTheDefaultsHold) {
  const options o = good({}, {{"HOME", "/home/somebody"}});
  EXPECT_EQ(o.address(), (endpoint{"127.0.0.1", 7878}));
  EXPECT_EQ(o.data, "/home/somebody/.local/share/leasehold");
  EXPECT_EQ(o.principals_file(), "/home/somebody/.local/share/leasehold/principals.toml");
  EXPECT_GE(o.threads, 1);
  EXPECT_EQ(o.policy, protocol::policy{});
  EXPECT_EQ(o.drain_timeout.ms, 10'000);
}

TEST_F(options_test, WithoutAHomeTheDataStandsInTheWorkingDirectory) {
  EXPECT_EQ(good({}, {}).data, "./leasehold-data");
  EXPECT_EQ(good({}, {{"XDG_DATA_HOME", "/srv/x"}, {"HOME", "/h"}}).data, "/srv/x/leasehold");
}

TEST_F(options_test, FlagsOverruleVariablesAndThoseTheFile) {
  const std::string file = write("threads = 2\nheartbeat = \"2s\"\nmax_downtime = \"2h\"\n");
  const environment variables{{"LEASEHOLD_HEARTBEAT", "3s"}, {"LEASEHOLD_MAX_DOWNTIME", "3h"}};
  const options o = good({"--config", file, "--max-downtime", "4h"}, variables);
  EXPECT_EQ(o.threads, 2);
  EXPECT_EQ(o.heartbeat.ms, 3'000);
  EXPECT_EQ(o.max_downtime.ms, 4 * 3'600'000);
}

TEST_F(options_test, AStoreWithoutAUrlIsTheDataDirectorys) {
  const auto in = [](const char* directory) {
    return storage::store_place(storage::sqlite_place{directory});
  };
  EXPECT_EQ(good({"--data", "/d"}).place_of_store(), in("/d"));
  EXPECT_EQ(good({"--data", "/d", "--store", "sqlite:/s"}).place_of_store(), in("/s"));
  EXPECT_EQ(good({"--store", "sqlite:/s/leasehold.db"}).place_of_store(), in("/s"));
  EXPECT_EQ(good({"--config", write("store = \"sqlite:/f\"\n")}).place_of_store(), in("/f"));
  EXPECT_EQ(good({}, {{"LEASEHOLD_STORE", "postgres://u@h/d"}}).place_of_store(),
            storage::store_place(storage::postgres_place{"postgres://u@h/d"}));
  EXPECT_THAT(refused({"--store", "mysql://u:hunter2@h/d"}),
              AllOf(HasSubstr("postgres"), Not(HasSubstr("hunter2"))));
}

TEST_F(options_test, APasswordInTheUrlOfAStoreIsNeverRepeated) {
  const std::string url = "postgres://u:hunter2@h/d?sslpassword=hunter2";
  const options o = good({"--store", url});
  EXPECT_EQ(o.place_of_store(), storage::store_place(storage::postgres_place{url}));
  EXPECT_THAT(storage::shown(o.place_of_store()), Not(HasSubstr("hunter2")));
  EXPECT_THAT(print_config(o),
              AllOf(HasSubstr("store = \"postgres://u@h/d\""), Not(HasSubstr("hunter2"))));
  EXPECT_THAT(refused({url}), Not(HasSubstr("hunter2")));
  EXPECT_THAT(refused({"--store", url, "--store", url}), Not(HasSubstr("hunter2")));
  EXPECT_EQ(changed_until_restart(o, good({"--store", "postgres://u@h/e"})), "store");
}

TEST_F(options_test, AQueueTakesTheDefaultPolicyAndItsOwnKeys) {
  const std::string file = write(
      "[queues.build]\nmax_live = 3\n[queues.build.policy]\nmax_attempts = 5\n"
      "[policy]\nlease_duration_ms = 7000\n");
  const options o = good({"--config", file, "--policy-ack-timeout-ms", "900"});
  EXPECT_EQ(o.queues.at("build").max_live, 3);
  EXPECT_EQ(o.policy_of("build").max_attempts, 5);
  EXPECT_EQ(o.policy_of("build").lease_duration.ms, 7000);
  EXPECT_EQ(o.policy_of("build").ack_timeout.ms, 900);
  EXPECT_EQ(o.policy_of("other").max_attempts, 0);
}

TEST_F(options_test, AnUnknownKeyIsRefusedWithItsPlaceAndTheNearestOne) {
  const std::string file = write("threads = 1\nheartbaet = \"1s\"\n");
  EXPECT_THAT(refused({"--config", file}),
              AllOf(HasSubstr("line 2"), HasSubstr("heartbaet"), HasSubstr("mean heartbeat?")));
  EXPECT_THAT(refused({}, {{"LEASEHOLD_LISTN", "x"}}), HasSubstr("LEASEHOLD_LISTEN?"));
  EXPECT_THAT(refused({"--nonsense", "1"}), HasSubstr("--nonsense"));
  EXPECT_THAT(refused({"--config", write("[policy]\nlease_duration = 5\n")}),
              HasSubstr("policy.lease_duration_ms?"));
}

TEST_F(options_test, TheVariablesOfTheOtherProgramAreLeftAlone) {
  good(
      {},
      {{"LEASEHOLD_URL", "x"}, {"LEASEHOLD_TOKEN", "x"}, {"LEASEHOLD_JOB_ID", "x"}, {"PATH", "x"}});
}

TEST_F(options_test, AKeyThatStandsTwiceIsRefused) {
  EXPECT_THAT(refused({"--config", write("threads = 1\nthreads = 2\n")}), HasSubstr("line 2"));
  EXPECT_THAT(refused({"--threads", "1", "--threads", "2"}), HasSubstr("threads"));
}

TEST_F(options_test, AMissingFileAndBrokenTomlAreOneSentence) {
  EXPECT_THAT(refused({"--config", "/nonexistent/x.toml"}), HasSubstr("/nonexistent/x.toml"));
  EXPECT_THAT(refused({"--config", write("threads = = 1\n")}), HasSubstr("line 1"));
}

TEST_F(options_test, AFileThatNeverEndsOrIsNoneIsRefusedAtOnce) {
  EXPECT_THAT(refused({"--config", "/dev/zero"}), HasSubstr("regular file of at most 1 MiB"));
  EXPECT_THAT(refused({"--config", testing::TempDir()}), HasSubstr("regular file"));
  EXPECT_THAT(refused({"--config", write(std::string((std::size_t{1} << 20) + 1, '\n'))}),
              HasSubstr("at most 1 MiB"));
  good({"--config", write("threads = 1\n" + std::string((std::size_t{1} << 20) - 12, '\n'))});
  const auto pipe = write("");
  std::filesystem::remove(pipe);
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(refused({"--config", pipe}), HasSubstr("regular file"));
  std::filesystem::remove(pipe);
}

TEST_F(options_test, OtherMachinesAreServedOnlyWhenThatIsSaid) {
  EXPECT_THAT(refused({"--listen", "0.0.0.0:7878"}),
              AllOf(HasSubstr("TLS"), HasSubstr("--insecure")));
  EXPECT_THAT(refused({"--listen", "[::]:7878"}), HasSubstr("--insecure"));
  EXPECT_TRUE(good({"--listen", "0.0.0.0:7878", "--insecure"}).insecure);
  EXPECT_EQ(good({"--listen", "[::1]:9"}).address(), (endpoint{"::1", 9}));
  EXPECT_EQ(good({"--listen", "localhost:0"}).address(), (endpoint{"127.0.0.1", 0}));
}

TEST_F(options_test, WithACertificateOtherMachinesAreServed) {
  const options o = good({"--listen", "0.0.0.0:7878", "--tls-certificate", "c", "--tls-private-key",
                          "k", "--tls-client-ca", "a", "--tls-client-certificates", "required"});
  EXPECT_TRUE(o.has_tls());
  EXPECT_FALSE(o.insecure);
  EXPECT_EQ(good({"--config", write(print_config(o))}), o);
  EXPECT_EQ(good({"--config", write(print_config(good({})))}).tls_certificate, "");
}

TEST_F(options_test, FilesOfTlsThatBelongTogetherAreAskedForTogether) {
  EXPECT_THAT(refused({"--tls-certificate", "c"}), HasSubstr("belong together"));
  EXPECT_THAT(refused({"--tls-private-key", "k"}), HasSubstr("belong together"));
  const std::vector<std::string> both{"--tls-certificate", "c", "--tls-private-key", "k"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), both.begin(), both.end());
    return more;
  };
  EXPECT_THAT(refused(with({"--tls-client-certificates", "optional"})), HasSubstr("tls.client_ca"));
  EXPECT_THAT(refused(with({"--tls-client-ca", "a"})), HasSubstr("tls.client_certificates"));
  EXPECT_THAT(refused({"--tls-client-certificates", "required", "--tls-client-ca", "a"}),
              HasSubstr("tls.certificate"));
  EXPECT_THAT(refused(with({"--tls-client-certificates", "maybe"})),
              HasSubstr("none|optional|required"));
}

TEST_F(options_test, OnlyWhetherThereIsTlsWaitsForTheNextStart) {
  const options plain;
  options one;
  one.tls_certificate = "a";
  options other = one;
  other.tls_certificate = "b";
  EXPECT_EQ(changed_until_restart(plain, one), "tls.certificate");
  EXPECT_EQ(changed_until_restart(one, plain), "tls.certificate");
  EXPECT_EQ(changed_until_restart(one, other), "");
}

TEST_F(options_test, VariablesOfTheClientProgramAreNotTheServers) {
  good({}, {{"LEASEHOLD_CERT_FILE", "c"}, {"LEASEHOLD_KEY_FILE", "k"}, {"LEASEHOLD_CA_FILE", "a"}});
}

TEST_F(options_test, AnAddressThatIsNoneIsRefusedWithAnExample) {
  for (const char* bad : {"7878", "127.0.0.1", "127.0.0.1:65536", "127.0.0.1:-1", "host.example:1",
                          "[127.0.0.1]:1", "::1:7878x"}) {
    EXPECT_THAT(refused({"--listen", bad}), HasSubstr("127.0.0.1:7878")) << bad;
  }
}

TEST_F(options_test, APolicyOutOfItsBoundsNamesTheKey) {
  EXPECT_THAT(refused({"--policy-lease-duration-ms", "0"}), HasSubstr("lease_duration_ms"));
  EXPECT_THAT(refused({"--policy-on-expiry", "sometimes"}), HasSubstr("on_expiry"));
  EXPECT_THAT(refused({"--policy-max-lifetime-ms", "5"}), HasSubstr("max_lifetime"));
  EXPECT_THAT(refused({"--config", write("[queues.q.policy]\nack_timeout_ms = -1\n")}),
              HasSubstr("ack_timeout_ms"));
}

TEST_F(options_test, PrintConfigPrintsAFileOfTheSameEffect) {
  const std::string file = write(
      "listen = \"127.0.0.1:1\"\n[http]\nallowed_origins = [\"https://a\", \"https://b\"]\n"
      "[queues.\"a.b\"]\nmax_live = 1\n[queues.\"a.b\".policy]\non_expiry = \"fail\"\n");
  const options first = good({"--config", file, "--data", "/d", "--threads", "2"});
  auto printed =
      load_options({"--config", file, "--data", "/d", "--threads", "2", "--print-config"}, {});
  const auto& text = std::get<say_and_exit>(printed);
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_EQ(good({"--config", write(text.text)}), first) << text.text;
}

TEST_F(options_test, HelpAndVersionEndWithZero) {
  for (const char* flag : {"--help", "--version"}) {
    auto loaded = load_options({flag}, {});
    ASSERT_TRUE(std::holds_alternative<say_and_exit>(loaded));
    EXPECT_EQ(std::get<say_and_exit>(loaded).exit_code, 0);
    EXPECT_THAT(std::get<say_and_exit>(loaded).text, HasSubstr("leaseholdd"));
  }
}

/// What --help says about each flag.
std::map<std::string, std::string> help_by_flag() {
  auto loaded = load_options({"--help"}, {});
  std::istringstream in(std::get<say_and_exit>(loaded).text);
  std::map<std::string, std::string> out;
  std::string flag;
  for (std::string line; std::getline(in, line);) {
    const bool goes_on = line.starts_with("      ") && !flag.empty();
    if (line.starts_with("  --")) flag = line.substr(2, line.find_first_of(" {", 2) - 2);
    if (line.starts_with("  --") || goes_on) out[flag] += line + '\n';
    if (line.empty()) flag.clear();
  }
  return out;
}

TEST_F(options_test, HelpTellsTheDefaultAndTheRangeOfEveryFlag) {
  const auto help = help_by_flag();
  std::size_t flags = 0;
  const auto expect_told = [&](std::string name, bool has_default) {
    std::ranges::replace(name, '.', '-');
    std::ranges::replace(name, '_', '-');
    ++flags;
    ASSERT_TRUE(help.contains("--" + name)) << name;
    const auto& text = help.at("--" + name);
    EXPECT_THAT(text, HasSubstr(" Takes "));
    EXPECT_THAT(text, HasSubstr(has_default ? " Default: " : "(default: ")) << name;
  };
  for (const config_key& key : config_keys()) {
    // What follows from other things is told in words.
    const bool names_a_file = key.kind == key_kind::text && key.name.starts_with("tls.");
    const bool follows =
        key.name == "data" || key.name == "store" || key.name == "principals" || names_a_file;
    if (key.at != nullptr) expect_told(std::string(key.name), !follows);
  }
  for (const auto& key : protocol::policy_keys()) {
    expect_told("policy." + std::string(key.name), true);
  }
  EXPECT_EQ(flags + 4, help.size());  // --version, --config, --print-config, --restored-backup
}

TEST_F(options_test, HelpHasTheDefaultsAndRangesThatHold) {
  const auto help = help_by_flag();
  EXPECT_THAT(help.at("--listen"), HasSubstr("Default: 127.0.0.1:7878."));
  EXPECT_THAT(help.at("--threads"), HasSubstr("from 0 to 256. Default: 0."));
  EXPECT_THAT(help.at("--drain-timeout"),
              AllOf(HasSubstr("from 0ms to 1h"), HasSubstr("Default: 10s.")));
  EXPECT_THAT(help.at("--log-level"), HasSubstr("trace|debug|info|warn|error. Default: info."));
  EXPECT_THAT(help.at("--insecure"), HasSubstr("true or false. Default: false."));
  EXPECT_THAT(help.at("--http-allowed-origins"), HasSubstr("Default: []."));
  EXPECT_THAT(help.at("--policy-lease-duration-ms"),
              HasSubstr("from 1 to 2592000000 (ms). Default: 30000."));
  EXPECT_THAT(help.at("--policy-on-expiry"), HasSubstr("reoffer|fail. Default: reoffer."));
}

/// Every measured key: its lowest and highest value are taken, what lies beyond is refused with the
/// key's name and its range, and so is a number without a unit.
class measured_key : public testing::TestWithParam<const config_key*> {
 protected:
  static std::string text(const config_key& key, std::int64_t value) {
    if (key.kind == key_kind::duration) return std::to_string(value) + "ms";
    if (key.kind == key_kind::size) return std::to_string(value) + "B";
    return std::to_string(value);
  }
  static std::optional<std::string> set(const config_key& key, raw_value value) {
    options o;
    const setting s{std::string(key.name), key.at == nullptr ? "q" : "", std::move(value), "here"};
    return apply_settings(o, std::span(&s, 1));
  }
};

TEST_P(measured_key, TakesItsBoundsAndRefusesWhatLiesBeyond) {
  const config_key& key = *GetParam();
  EXPECT_EQ(set(key, text(key, key.lowest)), std::nullopt);
  EXPECT_EQ(set(key, text(key, key.highest)), std::nullopt);
  for (const std::string& bad : {text(key, key.lowest - 1), text(key, key.highest + 1),
                                 std::string("x"), std::string(), std::string("1.5s")}) {
    const auto fault = set(key, bad);
    ASSERT_TRUE(fault) << bad;
    EXPECT_THAT(*fault,
                AllOf(HasSubstr(std::string(key.name)), HasSubstr("here"), HasSubstr(" from ")));
  }
}

TEST_P(measured_key, WithAUnitRefusesAPlainNumber) {
  const config_key& key = *GetParam();
  const auto fault = set(key, key.lowest + 1);
  EXPECT_EQ(fault.has_value(), key.kind != key_kind::count);
  EXPECT_TRUE(!fault || fault->find("unit") != std::string::npos);
}

std::vector<const config_key*> measured_keys() {
  std::vector<const config_key*> out;
  for (const config_key& key : config_keys()) {
    if (key.kind == key_kind::count || key.kind == key_kind::size ||
        key.kind == key_kind::duration) {
      out.push_back(&key);
    }
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(all, measured_key, testing::ValuesIn(measured_keys()), [](const auto& of) {
  std::string name(of.param->name);
  std::ranges::replace(name, '.', '_');
  return name;
});

TEST(units, AreReadAndPrintedWithoutLoss) {
  EXPECT_EQ(read_duration_ms("250ms"), 250);
  EXPECT_EQ(read_duration_ms("5s"), 5000);
  EXPECT_EQ(read_size_bytes("64KiB"), 65536);
  for (const char* bad :
       {"", "5", "s", "-5s", "5 s", "5S", "1.5s", "5ss", "9223372036854775807d", "0x1s"}) {
    EXPECT_EQ(read_duration_ms(bad), std::nullopt) << bad;
  }
  for (const std::int64_t ms : {0L, 1L, 999L, 1000L, 60'000L, 3'600'000L, 86'400'000L, 90'000L}) {
    EXPECT_EQ(read_duration_ms(print_duration(ms)), ms);
  }
  EXPECT_EQ(print_size(1 << 20), "1MiB");
}

TEST(printable, EscapesWhatWouldForgeALineOrATerminal) {
  EXPECT_EQ(config_text::printable("a\nb\x1b[31m"), "a\\u000ab\\u001b[31m");
  EXPECT_EQ(config_text::printable("\xff\xc0\x80"), "\\xff\\xc0\\x80");
  EXPECT_EQ(config_text::printable("\u202Eabc"), "\\u202eabc");
  EXPECT_EQ(config_text::printable("grün"), "grün");
  EXPECT_EQ(config_text::printable(std::string(300, 'x'), 10), "xxxxxxxxxx...");
}

}  // namespace
}  // namespace leasehold::server
