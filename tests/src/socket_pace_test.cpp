// When an open socket is asked for a sign of life, and when it is too slow or too loud.
#include "src/socket_pace.hpp"

#include <gtest/gtest.h>

namespace leasehold::server {
namespace {

using std::chrono::milliseconds;
using due = socket_pace::due;

class socket_pace_test : public testing::Test {
 protected:
  static net_limits chosen() {
    net_limits out;
    out.ping = milliseconds{20};
    out.idle = milliseconds{60};
    out.assembly = milliseconds{10};
    out.pieces = 4;
    out.control_frames_per_second = 10;
    out.control_frame_burst = 3;
    return out;
  }
  due look_at(int ms) { return pace.look(start + milliseconds{ms}); }
  socket_pace::time_point at(int ms) const { return start + milliseconds{ms}; }

  net_limits limits = chosen();
  socket_pace::time_point start{std::chrono::hours{1}};
  socket_pace pace{limits, start};
};

TEST_F(socket_pace_test, ASilentSocketIsPingedOnceAndThenGivenUp) {
  EXPECT_EQ(look_at(19), due::nothing);
  EXPECT_EQ(look_at(20), due::ping);
  EXPECT_EQ(look_at(21), due::nothing);
  EXPECT_EQ(look_at(59), due::nothing);
  EXPECT_EQ(look_at(60), due::nothing_heard);
}

TEST_F(socket_pace_test, AByteBeginsTheSilenceAnew) {
  EXPECT_EQ(look_at(20), due::ping);
  pace.hear(at(59));
  EXPECT_EQ(look_at(78), due::nothing);
  EXPECT_EQ(look_at(79), due::ping);
}

TEST_F(socket_pace_test, TheNextLookIsAtTheFirstThingThatIsDue) {
  EXPECT_EQ(pace.next_look(at(0)), at(20));
  EXPECT_EQ(look_at(40), due::ping);
  EXPECT_EQ(pace.next_look(at(40)), at(60));
  EXPECT_TRUE(pace.take_piece(at(55), 0));
  EXPECT_EQ(pace.next_look(at(55)), at(65));
  EXPECT_GT(pace.next_look(at(65)), at(65));
}

TEST_F(socket_pace_test, APeerHasItsTimeAnewAfterThisProcessStoodStill) {
  EXPECT_EQ(pace.next_look(at(0)), at(20));
  EXPECT_EQ(look_at(20), due::ping);
  EXPECT_EQ(pace.next_look(at(20)), at(40));
  EXPECT_TRUE(pace.take_piece(at(39), 0));
  EXPECT_EQ(look_at(500), due::nothing);
  EXPECT_EQ(pace.next_look(at(500)), at(510));
  pace.end_message();
  EXPECT_EQ(look_at(510), due::nothing);
  EXPECT_EQ(pace.next_look(at(510)), at(520));
  EXPECT_EQ(look_at(520), due::ping);
  EXPECT_EQ(look_at(560), due::nothing_heard);
}

TEST_F(socket_pace_test, ALookThatIsLateByLessThanAPingsWaitChangesNothing) {
  for (const int late : {0, 1, 20}) {
    socket_pace one{limits, start};
    EXPECT_EQ(one.next_look(at(0)), at(20));
    EXPECT_EQ(one.look(at(20 + late)), due::ping);
    EXPECT_EQ(one.look(at(60)), due::nothing_heard);
  }
}

TEST_F(socket_pace_test, AMessageHasItsTimeFromItsFirstPiece) {
  EXPECT_TRUE(pace.take_piece(at(0), 0));
  EXPECT_TRUE(pace.began_message());
  EXPECT_TRUE(pace.take_piece(at(10), 0));
  EXPECT_FALSE(pace.began_message());
  EXPECT_EQ(look_at(9), due::nothing);
  EXPECT_EQ(look_at(10), due::message_too_slow);
  EXPECT_FALSE(pace.take_piece(at(11), 0));
  pace.end_message();
  EXPECT_EQ(look_at(12), due::nothing);
}

TEST_F(socket_pace_test, AMessageMayComeInMorePiecesTheLongerItIs) {
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(pace.take_piece(at(0), 511));
  EXPECT_FALSE(pace.take_piece(at(0), 511));
  EXPECT_TRUE(pace.take_piece(at(0), 1024));
}

TEST_F(socket_pace_test, ControlFramesMayComeInABurstAndThenAtTheirRate) {
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(pace.take_control(at(0)));
  EXPECT_FALSE(pace.take_control(at(0)));
  EXPECT_FALSE(pace.take_control(at(100)));
  EXPECT_TRUE(pace.take_control(at(300)));
}

}  // namespace
}  // namespace leasehold::server
