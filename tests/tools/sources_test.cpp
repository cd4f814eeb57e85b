// Reads the sources themselves: who includes whom, who asks a clock, who calls the rules.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace leasehold::tests {
namespace {

namespace fs = std::filesystem;

struct source {
  std::string path;                   ///< from the root of the tree
  std::string text;                   ///< without comments and the content of strings
  std::vector<std::string> includes;  ///< with their quotes or brackets
};

/// Comments and what stands between quotes become blanks; includes are read before.
std::string without_comments(const std::string& text) {
  static const std::regex noise(R"(//[^\n]*|/\*[^*]*\*+(?:[^/*][^*]*\*+)*/|"(?:[^"\\\n]|\\.)*")");
  return std::regex_replace(text, noise, "\"\"");
}

std::vector<std::string> includes_of(const std::string& text) {
  static const std::regex line(R"(^\s*#\s*include\s+(<[^>]+>|"[^"]+"))", std::regex::multiline);
  std::vector<std::string> out;
  for (std::sregex_iterator at(text.begin(), text.end(), line), end; at != end; ++at) {
    out.push_back((*at)[1]);
  }
  return out;
}

std::vector<source> read_tree() {
  const fs::path root(LEASEHOLD_SOURCE_DIR);
  std::vector<source> out;
  for (const char* part : {"protocol", "actors", "src", "tools"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / part)) {
      const auto extension = entry.path().extension();
      if (extension != ".cpp" && extension != ".hpp") continue;
      std::ifstream in(entry.path());
      const std::string text{std::istreambuf_iterator<char>(in), {}};
      out.push_back({fs::relative(entry.path(), root), without_comments(text), includes_of(text)});
    }
  }
  return out;
}

const std::vector<source>& tree() {
  static const std::vector<source> all = read_tree();
  return all;
}

bool starts(const std::string& text, std::string_view with) { return text.starts_with(with); }

bool is_codec(const source& file) { return starts(file.path, "protocol/codec"); }

/// <vector>, <cstdint>: the standard library's headers have neither a folder nor an ending.
bool is_standard(const std::string& include) {
  return include.front() == '<' && include.find('/') == std::string::npos &&
         include.find('.') == std::string::npos;
}

/// A header of the file's own folder: "rules_parts.hpp".
bool is_own_folder(const std::string& include) {
  return include.front() == '"' && include.find('/') == std::string::npos;
}

/// Fails for each include of the files under `folder` that `is_allowed` does not let through.
template <class Allowed>
void expect_includes(std::string_view folder, Allowed is_allowed) {
  int files = 0;
  for (const auto& file : tree()) {
    if (!starts(file.path, folder)) continue;
    ++files;
    for (const auto& include : file.includes) {
      EXPECT_TRUE(is_allowed(file, include)) << file.path << " must not include " << include;
    }
  }
  EXPECT_GT(files, 3) << folder;
}

TEST(Arrows, ProtocolKnowsTheStandardLibraryOnly) {
  expect_includes("protocol/", [](const source& file, const std::string& include) {
    if (is_codec(file) && (starts(include, "<google/protobuf/") || include.ends_with(".pb.h\""))) {
      return true;
    }
    return is_standard(include) || is_own_folder(include) ||
           starts(include, "\"leasehold/protocol/");
  });
}

TEST(Arrows, ProtocolAsksForNoFileThreadOrClock) {
  expect_includes("protocol/", [](const source&, const std::string& include) {
    static const std::set<std::string> banned{"<chrono>", "<thread>",   "<mutex>",  "<fstream>",
                                              "<random>", "<iostream>", "<atomic>", "<filesystem>"};
    return !banned.contains(include);
  });
}

TEST(Arrows, ActorsKnowTheProtocolCafAndContainersOnly) {
  expect_includes("actors/", [](const source& file, const std::string& include) {
    static const std::set<std::string> banned{"<thread>", "<fstream>", "<iostream>", "<filesystem>",
                                              "<random>"};
    if (banned.contains(include)) return false;
    // Hand-overs within CAF's mailboxes are told to ThreadSanitizer where all of CAF is named.
    if (include == "<sanitizer/tsan_interface.h>") {
      return file.path == "actors/include/leasehold/actors/caf_compat.hpp";
    }
    // Containers and a hash: no socket, thread or clock comes with them.
    return is_standard(include) || is_own_folder(include) || starts(include, "<caf/") ||
           starts(include, "<boost/intrusive/") || starts(include, "<boost/unordered/") ||
           include == "<xxhash.h>" || starts(include, "\"caf/") ||
           starts(include, "\"leasehold/protocol/") || starts(include, "\"leasehold/actors/") ||
           starts(include, "\"actors/");
  });
}

TEST(Arrows, TheServerKnowsNoTool) {
  expect_includes("src/", [](const source&, const std::string& include) {
    return !starts(include, "\"tools/") && !starts(include, "\"leasehold/client/");
  });
}

TEST(Arrows, TheWorkersLibraryKnowsTheProtocolOnly) {
  expect_includes("tools/client/", [](const source&, const std::string& include) {
    return !starts(include, "\"src/") && !starts(include, "\"leasehold/actors/") &&
           (!starts(include, "\"tools/") || starts(include, "\"tools/client/"));
  });
}

TEST(Arrows, GeneratedHeadersStayInsideTheCodec) {
  for (const auto& file : tree()) {
    if (is_codec(file)) continue;
    for (const auto& include : file.includes) {
      EXPECT_EQ(include.find(".pb.h"), std::string::npos) << file.path << " includes " << include;
    }
  }
}

TEST(Arrows, InstalledHeadersNameNoLibrary) {
  for (const auto& file : tree()) {
    const bool is_installed = file.path.find("/include/leasehold/") != std::string::npos;
    if (!is_installed || file.path.ends_with("caf_compat.hpp")) continue;
    for (const auto& include : file.includes) {
      EXPECT_TRUE(is_standard(include) || starts(include, "\"leasehold/"))
          << file.path << " includes " << include;
    }
  }
}

/// Fails where `pattern` stands outside the files that may hold it, and where one of those does not
/// hold it any more: then the list is too long.
void expect_only_in(const std::string& pattern, const std::set<std::string>& allowed) {
  const std::regex wanted(pattern);
  std::set<std::string> found;
  for (const auto& file : tree()) {
    if (std::regex_search(file.text, wanted)) found.insert(file.path);
  }
  for (const auto& path : found) EXPECT_TRUE(allowed.contains(path)) << path << " has " << pattern;
  for (const auto& path : allowed)
    EXPECT_TRUE(found.contains(path)) << path << " lacks " << pattern;
}

TEST(BannedCalls, RulesAreAppliedByTheirFourCallersOnly) {
  expect_only_in(
      R"(\b(recover_due|recover_grace|expire_due)\b)",
      {"protocol/step.cpp", "protocol/fold.cpp", "protocol/include/leasehold/protocol/rules.hpp",
       "actors/lease_actor.cpp", "actors/recovery.cpp", "tools/scenario_run.cpp"});
  expect_only_in(R"(\bprotocol::(decide|apply|step)\()", {"actors/lease_actor.cpp"});
}

TEST(BannedCalls, NeitherProtocolNorActorsAskAClockOrChance) {
  static const std::regex banned(
      R"(_clock::now\(|\btime\((nullptr|NULL|0)\)|gettimeofday|clock_gettime|random_device|mt19937)"
      R"(|\brand\(|sleep|this_thread)");
  for (const auto& file : tree()) {
    if (!starts(file.path, "protocol/") && !starts(file.path, "actors/")) continue;
    std::smatch hit;
    EXPECT_FALSE(std::regex_search(file.text, hit, banned)) << file.path << " has " << hit.str();
  }
}

TEST(BannedCalls, TheDayIsAskedForInOnePlaceOfTheServer) {
  static const std::regex banned(
      R"(system_clock::now\(|gettimeofday|clock_gettime|\btime\(nullptr\))");
  for (const auto& file : tree()) {
    if (!starts(file.path, "src/") || file.path == "src/system_clock.cpp") continue;
    EXPECT_FALSE(std::regex_search(file.text, banned)) << file.path;
  }
}

TEST(BannedCalls, TheProgramPrintsThroughOnePlaceThatSeesWhatIsLost) {
  static const std::regex banned(
      R"(\bstdout\b|std::cout|std::cerr|\bfmt::print\(|\bprintf\(|\bputs\()");
  for (const auto& file : tree()) {
    if (!starts(file.path, "tools/") || file.path == "tools/output.cpp") continue;
    std::smatch hit;
    EXPECT_FALSE(std::regex_search(file.text, hit, banned)) << file.path << " has " << hit.str();
  }
}

TEST(BannedCalls, SecretsComeFromTheSystemsGenerator) {
  static const std::regex weak(R"(\brand\(|\bsrand\(|mt19937)");
  for (const auto& file : tree()) {
    if (!starts(file.path, "src/")) continue;
    EXPECT_FALSE(std::regex_search(file.text, weak)) << file.path;
  }
}

}  // namespace
}  // namespace leasehold::tests
