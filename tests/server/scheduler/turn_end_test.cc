#include "server/scheduler/turn_end.h"

#include <memory>
#include <optional>
#include <string>

#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/session/session_store.h"
#include "tests/fakes/fake_clock.h"

namespace txl {
namespace {

class TurnEndTest : public ::testing::Test {
 protected:
  TurnEndTest() {
    EXPECT_TRUE(store_.Create("a", std::nullopt).ok());
    turn_.lease = *store_.Acquire("a");
    turn_.cancel = std::make_shared<CancelToken>();
  }
  // `seconds` after the turn came; the longest turn has an hour.
  std::string Reason(int seconds) {
    const auto end = EndOf(turn_, absl::Seconds(100), absl::Hours(1),
                           absl::Seconds(100 + seconds));
    return end.has_value() ? GetErrorDetails(*end).reason : "";
  }

  FakeClock clock_;
  SessionStore store_{SessionStoreOptions(), &clock_};
  Turn turn_;
};

TEST_F(TurnEndTest, ATurnThatNobodyStopsGoesOn) { EXPECT_EQ(Reason(3599), ""); }

TEST_F(TurnEndTest, ACancelledTurnEndsAsItsClientSaid) {
  turn_.cancel->Cancel(CancelToken::Why::kCancelled);
  EXPECT_EQ(Reason(0), "CANCELLED");
  turn_.cancel = std::make_shared<CancelToken>();
  turn_.cancel->Cancel(CancelToken::Why::kDeadline);
  EXPECT_EQ(Reason(0), "DEADLINE_EXCEEDED");
}

TEST_F(TurnEndTest, ADeadlineEndsTheTurnWhenItHasCome) {
  turn_.deadline = absl::Seconds(105);
  EXPECT_EQ(Reason(4), "");
  EXPECT_EQ(Reason(5), "DEADLINE_EXCEEDED");
}

TEST_F(TurnEndTest, ATurnOfADeletedSessionEnds) {
  ASSERT_TRUE(store_.Delete("a").ok());
  EXPECT_EQ(Reason(0), "SESSION_DELETED");
}

TEST_F(TurnEndTest, TheLongestTurnEndsByTheServersSettingAndSaysSo) {
  EXPECT_EQ(Reason(3600), "DEADLINE_EXCEEDED");
  const auto end =
      EndOf(turn_, absl::ZeroDuration(), absl::Hours(1), absl::Hours(1));
  EXPECT_NE(end->message().find("longest_turn, 1h"), std::string::npos) << *end;
}

}  // namespace
}  // namespace txl
