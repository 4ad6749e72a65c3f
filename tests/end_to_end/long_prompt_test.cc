// A long prompt does not stop the streams of others.

#include <gtest/gtest.h>

#include <thread>

#include "absl/synchronization/notification.h"
#include "tests/end_to_end/server_process.h"
#include "tests/end_to_end/turns.h"

namespace txl::testing {
namespace {

constexpr int64_t kLongPrompt = 8000;

TEST(LongPrompt, EveryStepThatFeedsItAlsoDecodesTheRunningStream) {
  ServerProcess server(GoldenModel("kimi-char"),
                       {"--slots", "4", "--config", NeverParked()});
  CreateSession(server.client(), "long");
  absl::Notification streaming;
  Canceller canceller;
  TurnOutput stream;
  std::thread reader([&] {
    stream = RunTurn(server.client(),
                     Greedy("", std::vector<uint32_t>{1, 2, 3}, 4096),
                     {.canceller = &canceller}, [&](int64_t tokens) {
                       if (tokens == 1) streaming.Notify();
                     });
  });
  streaming.WaitForNotification();
  const v1::GetServerStatusResponse before = server.Status();
  const auto appended =
      Append(server.client(), "long", RandomIds(1, kLongPrompt, kVocabulary));
  const v1::GetServerStatusResponse after = server.Status();
  canceller.Cancel();
  reader.join();

  ASSERT_TRUE(appended.ok()) << appended.status();
  EXPECT_EQ(appended->position(), kLongPrompt);
  // The last token of a prompt is fed by the next turn, if the engine likes.
  EXPECT_GE(after.rows_prefill() - before.rows_prefill(), kLongPrompt - 1);
  EXPECT_EQ(after.turns_active(), 1) << "the stream ended too early";
  const int64_t steps = after.steps() - before.steps();
  EXPECT_GT(steps, 1);
  EXPECT_EQ(after.steps_with_decode() - before.steps_with_decode(), steps);
  EXPECT_GE(after.steps_with_prompt_and_decode() -
                before.steps_with_prompt_and_decode(),
            2);
}

}  // namespace
}  // namespace txl::testing
