// A client that does not read holds up nobody but itself.

#include <gtest/gtest.h>

#include "tests/end_to_end/server_process.h"
#include "tests/end_to_end/stuck_reader.h"
#include "tests/end_to_end/turns.h"

namespace txl::testing {
namespace {

constexpr int kPromptTokens = 3;  // of StuckReader
constexpr int kMaxTokens = 4096;

TEST(SlowReader, IsParkedThenClosedWhileAnotherStreamGoesOn) {
  ServerProcess server(GoldenModel("kimi-char"),
                       {"--slots", "4", "--slow-reader-limit", "2s"});
  CreateSession(server.client(), "slow");
  StuckReader slow(server, "slow");
  const TurnOutput other =
      RunTurn(server.client(), Greedy("", std::vector<uint32_t>{4, 5}, 200));
  EXPECT_TRUE(other.status.ok()) << other.status;
  EXPECT_EQ(other.ids.size(), 200u);
  EXPECT_TRUE(WaitUntil([&] {
    return server.Status().turns_finished().count("RESOURCE_EXHAUSTED") == 1;
  }));
  EXPECT_EQ(server.Status().turns_parked(), 0);

  const TurnOutput closed = slow.ReadOn();
  ExpectError(closed.status, absl::StatusCode::kResourceExhausted,
              "CLIENT_TOO_SLOW");
  const int held = IdleSession(server.client(), "slow").token_ids_size();
  EXPECT_GE(held, kPromptTokens + static_cast<int>(closed.ids.size()));
  EXPECT_LT(held, kPromptTokens + kMaxTokens);
}

TEST(SlowReader, ThatReadsOnInTimeGetsEveryToken) {
  ServerProcess server(GoldenModel("kimi-char"), {"--slots", "4"});
  StuckReader slow(server, "");
  EXPECT_TRUE(
      WaitUntil([&] { return server.Status().stream_queue_tokens() > 0; }));
  const TurnOutput turn = slow.ReadOn();
  EXPECT_TRUE(turn.status.ok()) << turn.status;
  EXPECT_EQ(turn.ids.size(), static_cast<size_t>(kMaxTokens));
  EXPECT_TRUE(
      WaitUntil([&] { return server.Status().stream_queue_tokens() == 0; }));
}

}  // namespace
}  // namespace txl::testing
