// What a handle must be to be looked at.
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "dispatch_scene.hpp"

namespace leasehold::protocol {
namespace {

TEST(ProcessHandle, AWholeOneIsWellFormed) {
  EXPECT_TRUE(is_well_formed({"linux", 4711, host, 99, 4711}));
  EXPECT_TRUE(is_well_formed({"plan9", 4711, host, 99, 4711})) << "supported is another question";
}

TEST(ProcessHandle, EachFieldHasItsRange) {
  const auto holds = [](auto change) {
    process_handle h{"linux", 4711, host, 99, 4711};
    change(h);
    return is_well_formed(h);
  };
  const auto pid = [&](std::int64_t to) {
    return holds([to](auto& h) { h.pid = h.process_group = to; });
  };
  EXPECT_FALSE(pid(1));
  EXPECT_TRUE(pid(2));
  EXPECT_TRUE(pid(3));
  EXPECT_TRUE(pid((1 << 22) - 1));
  EXPECT_TRUE(pid(1 << 22));
  EXPECT_FALSE(pid((1 << 22) + 1));
  EXPECT_FALSE(pid(-4711));
  EXPECT_FALSE(pid(0));
  for (const std::int64_t group : {4710, 4712, 0, -4711}) {
    EXPECT_FALSE(holds([group](auto& h) { h.process_group = group; }));
  }
  for (const auto& [ticks, fits] : std::array{std::pair{-1, false}, std::pair{0, false},
                                              std::pair{1, true}, std::pair{2, true}}) {
    EXPECT_EQ(holds([ticks = ticks](auto& h) { h.start_ticks = ticks; }), fits) << ticks;
  }
  EXPECT_TRUE(holds([](auto& h) { h.start_ticks = 0x7fffffffffff; }));
  EXPECT_FALSE(holds([](auto& h) { h.start_ticks = 0x800000000000; }));
  for (const std::size_t size : {1U, 16U}) {
    EXPECT_TRUE(holds([size](auto& h) { h.platform = std::string(size, 'a'); }));
  }
  for (const auto& text : {std::string(), std::string(17, 'a'), std::string("Linux"),
                           std::string("li nux"), std::string("linux\n")}) {
    EXPECT_FALSE(holds([&](auto& h) { h.platform = text; })) << text;
  }
}

TEST(ProcessHandle, ABootIdIsALowerCaseUuid) {
  const auto holds = [](std::string id) {
    return is_well_formed({"linux", 4711, std::move(id), 99, 4711});
  };
  EXPECT_FALSE(holds(""));
  EXPECT_FALSE(holds(host.substr(1)));
  EXPECT_FALSE(holds(host + "0"));
  EXPECT_FALSE(holds("10C57E73-a9fd-46f1-aecb-71b60c3b41fc"));
  EXPECT_FALSE(holds("10c57e73aa9fd-46f1-aecb-71b60c3b41fc"));
  EXPECT_FALSE(holds("10c57e73-a9fd-46f1-aecb-71b60c3b41fg"));
  EXPECT_FALSE(holds("10c57e7--a9fd-46f1-aecb-71b60c3b41fc"));
}

}  // namespace
}  // namespace leasehold::protocol
