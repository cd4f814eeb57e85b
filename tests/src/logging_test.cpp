#include "src/logging.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/ostream_sink.h>

#include <boost/json.hpp>
#include <condition_variable>
#include <mutex>
#include <sstream>

namespace leasehold::server {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string written(log_form form, std::string_view what, std::initializer_list<log_field> fields) {
  std::ostringstream out;
  log lines(log_level::info, form, std::make_shared<spdlog::sinks::ostream_sink_mt>(out));
  lines.write(log_level::info, what, fields);
  lines.close();
  return out.str();
}

TEST(logging, AJsonLineIsOneObjectWithTypedFields) {
  const std::string line = written(log_form::json, "session opened",
                                   {{"epoch", 7}, {"resumed", true}, {"who", "w\"\\1"}});
  EXPECT_EQ(std::ranges::count(line, '\n'), 1);
  const auto value = boost::json::parse(line);
  EXPECT_EQ(value.at("level"), "info");
  EXPECT_EQ(value.at("event"), "session opened");
  EXPECT_EQ(value.at("epoch"), 7);
  EXPECT_EQ(value.at("resumed"), true);
  EXPECT_EQ(value.at("who"), "w\"\\1");
}

TEST(logging, TextFromOutsideForgesNoLineAndMovesNoTerminal) {
  const std::string bad = "x\n{\"level\":\"error\"}\r\x1b[2J\u202e%v{}\xff";
  for (const log_form form : {log_form::json, log_form::human}) {
    const std::string line = written(form, "refused", {{"why", bad}});
    EXPECT_EQ(std::ranges::count(line, '\n'), 1) << line;
    for (const char* piece : {"\r", "\x1b", "\u202e", "\xff"})
      EXPECT_THAT(line, Not(HasSubstr(piece)));
    EXPECT_THAT(line, HasSubstr("%v{}"));
  }
  EXPECT_NO_THROW(boost::json::parse(written(log_form::json, "refused", {{"why", bad}})));
}

TEST(logging, LongTextIsCut) {
  EXPECT_LT(written(log_form::json, "x", {{"why", std::string(100'000, 'y')}}).size(), 1000U);
}

TEST(logging, ALevelBelowTheChosenOneIsNotWritten) {
  std::ostringstream out;
  log lines(log_level::warn, log_form::human,
            std::make_shared<spdlog::sinks::ostream_sink_mt>(out));
  lines.write(log_level::info, "quiet");
  lines.set_level(log_level::debug);
  lines.write(log_level::debug, "loud", {{"n", 1}});
  lines.close();
  EXPECT_THAT(out.str(), Not(HasSubstr("quiet")));
  EXPECT_THAT(out.str(), HasSubstr("loud n=1"));
}

/// A sink that writes nothing until it is let go.
class stuck_sink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  void let_go() {
    {
      const std::lock_guard lock(mutex);
      free = true;
    }
    changed.notify_all();
  }
  int count = 0;

 protected:
  void sink_it_(const spdlog::details::log_msg&) override {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return free; });
    ++count;
  }
  void flush_() override {}

 private:
  std::mutex mutex;
  std::condition_variable changed;
  bool free = false;
};

TEST(logging, AStuckWriterBlocksNobodyAndWhatIsDroppedIsCounted) {
  auto sink = std::make_shared<stuck_sink>();
  log lines(log_level::info, log_form::json, sink, 16);
  for (int i = 0; i < 1000; ++i) lines.write(log_level::info, "x");
  EXPECT_GT(lines.dropped(), 0);
  sink->let_go();
  lines.close();
  EXPECT_LT(sink->count, 1000);
  lines.write(log_level::info, "after the end");
}

}  // namespace
}  // namespace leasehold::server
