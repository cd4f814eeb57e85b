// What a person sees on a terminal of what workers and clients have sent.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <termios.h>
#include <unistd.h>

#include "shell_run.hpp"
#include "stream_peer.hpp"

namespace leasehold::e2e {
namespace {

using testing::HasSubstr;
using testing::Not;

/// A terminal that nobody sits at: what was written to it can be read.
class terminal {
 public:
  terminal() : ours_(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK)) {
    ::grantpt(ours_);
    ::unlockpt(ours_);
    name_ = ::ptsname(ours_);
    theirs_ = ::open(name_.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC);
    termios plain{};
    ::tcgetattr(theirs_, &plain);
    ::cfmakeraw(&plain);
    ::tcsetattr(theirs_, TCSANOW, &plain);
  }
  ~terminal() {
    ::close(ours_);
    ::close(theirs_);
  }
  terminal(const terminal&) = delete;
  terminal& operator=(const terminal&) = delete;

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// What has been written and not been read.
  [[nodiscard]] std::string shown() const {
    std::string out;
    std::array<char, 4096> piece{};
    for (ssize_t size; (size = ::read(ours_, piece.data(), piece.size())) > 0;) {
      out.append(piece.data(), static_cast<std::size_t>(size));
    }
    return out;
  }

 private:
  int ours_;
  int theirs_ = -1;
  std::string name_;
};

constexpr auto treacherous = "half\x1b[2J\u202edone";

/// A job whose progress would clear a terminal and turn its text around.
class Treachery : public testing::Test {
 protected:
  Treachery() : worker_(server_, "w1") {
    worker_.hello();
    worker_.credit(1);
    server_.submit("sly", {{"lease_duration_ms", 3'600'000}});
    EXPECT_TRUE(worker_.offer_of("sly"));
    worker_.start("sly", 1);
    EXPECT_EQ(worker_.tell(worker_.progress("sly", 1, 1, treacherous)).reason,
              protocol::reason::progress_recorded);
  }
  [[nodiscard]] shell_end run(std::vector<std::string> call, const std::string& redirection) const {
    call.insert(call.begin(),
                {"--url", server_.url(), "--token-file", server_.data() / "operator.token"});
    return run_in_shell(call, redirection);
  }

 private:
  live_server server_{1};
  stream_peer worker_;
};

TEST_F(Treachery, IsShownAndNotDoneInEveryText) {
  for (const auto& call :
       {std::vector<std::string>{"jobs"}, {"job", "show", "sly"}, {"job", "evidence", "sly"}}) {
    EXPECT_THAT(run(call, "").out, HasSubstr("half\\u001b[2J\\u202edone")) << call.front();
  }
}

TEST_F(Treachery, ReachesNoTerminalAsCsvAndIsKeptInAFile) {
  const std::vector<std::string> call{"job", "evidence", "sly", "--csv"};
  EXPECT_THAT(run(call, "").out, HasSubstr(treacherous));
  const terminal screen;
  EXPECT_EQ(run(call, '>' + quoted(screen.name())).exit_code, 0);
  const auto shown = screen.shown();
  EXPECT_THAT(shown, HasSubstr("half\\u001b[2J\\u202edone"));
  EXPECT_THAT(shown, Not(HasSubstr("\x1b")));
  EXPECT_THAT(shown, Not(HasSubstr("\\u000d")));
}

TEST_F(Treachery, IsKeptInJson) {
  EXPECT_THAT(run({"--json", "job", "show", "sly"}, "").out, HasSubstr("half\\u001b[2J\u202edone"));
}

}  // namespace
}  // namespace leasehold::e2e
