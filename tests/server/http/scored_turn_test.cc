#include "server/http/scored_turn.h"

#include <gtest/gtest.h>

#include <string>

#include "server/base/error.h"
#include "tests/server/rpc/rpc_world.h"

namespace txl {
namespace {

// What TurnBehind makes of a turn scored at `position`: it, or the reason.
std::string Behind(int64_t position, const std::string& turn) {
  v1::ScoreResponse scores;
  scores.set_position(position);
  const auto made = TurnBehind(scores, Proto<v1::GenerateRequest>(turn));
  return made.ok() ? made->ShortDebugString() : ReasonOf(made.status());
}

TEST(TurnBehind, WantsTheSessionWhereItWasScored) {
  EXPECT_EQ(Behind(0, "session_id: 's'"),
            "session_id: \"s\" expected_position: 0");
  EXPECT_EQ(Behind(7, "session_id: 's' text: 'a'"),
            "session_id: \"s\" text: \"a\" expected_position: 7");
}

TEST(TurnBehind, ObeysTheClientsOwnExpectation) {
  EXPECT_EQ(Behind(7, "session_id: 's' expected_position: 7"),
            "session_id: \"s\" expected_position: 7");
  EXPECT_EQ(Behind(7, "session_id: 's' expected_position: 8"),
            "POSITION_MISMATCH");
  EXPECT_EQ(Behind(7, "session_id: 's' expected_position: 0"),
            "POSITION_MISMATCH");
}

TEST(TurnBehind, WithoutASessionIsAsItWas) {
  EXPECT_EQ(Behind(0, "text: 'a'"), "text: \"a\"");
}

}  // namespace
}  // namespace txl
