#include "server/scheduler/admission_queue.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/session/session_store.h"
#include "tests/fakes/fake_clock.h"
#include "tests/server/metrics/conservation.h"

namespace txl {
namespace {

constexpr absl::Duration kNow = absl::Seconds(100);

bool Any(const QueuedTurn&) { return true; }

class AdmissionQueueTest : public ::testing::Test {
 protected:
  AdmissionQueueOptions Options(int calls, int tokens) {
    AdmissionQueueOptions options;
    options.max_calls = calls;
    options.max_tokens = tokens;
    options.retry_after = absl::Seconds(3);
    return options;
  }
  Turn NewTurn(int tokens) {
    return Turn{.kind = TurnKind::kGenerate,
                .lease = *store_.AcquireTemporary(),
                .input = std::vector<int32_t>(tokens),
                .sampling = {},
                .stop = {},
                .identity = {},
                .resumed = nullptr,
                .deadline = std::nullopt,
                .sink = nullptr,
                .cancel = nullptr};
  }
  absl::Status Push(AdmissionQueue& queue, int tokens) {
    Turn turn = NewTurn(tokens);
    return queue.Push(turn, absl::Seconds(tokens));
  }

  FakeClock clock_;
  SessionStore store_{SessionStoreOptions(), &clock_};
  Metrics metrics_;
};

TEST_F(AdmissionQueueTest, TurnsComeOutInTheirOrder) {
  AdmissionQueue queue(Options(5, 100), &metrics_);
  for (int tokens : {4, 2, 9}) ASSERT_TRUE(Push(queue, tokens).ok());
  for (int tokens : {4, 2, 9}) {
    const auto taken = queue.TakeFirst(kNow, Any);
    ASSERT_TRUE(taken.has_value());
    EXPECT_EQ(taken->turn.input.size(), static_cast<size_t>(tokens));
    EXPECT_EQ(taken->submitted, absl::Seconds(tokens));
  }
  EXPECT_FALSE(queue.TakeFirst(kNow, Any).has_value());
  EXPECT_TRUE(queue.empty());
}

TEST_F(AdmissionQueueTest, AdoptedTokensWaitLikeThoseOfAPrompt) {
  AdmissionQueue queue(Options(5, 10), &metrics_);
  ASSERT_TRUE(Push(queue, 4).ok());
  Turn turn = NewTurn(2);
  turn.adopted.resize(5);
  EXPECT_EQ(queue.Push(turn, kNow).code(),
            absl::StatusCode::kResourceExhausted);
  turn.adopted.resize(4);
  ASSERT_TRUE(queue.Push(turn, kNow).ok());
  EXPECT_EQ(metrics_.Get().queued_tokens, 10);
  queue.TakeFirst(kNow, Any);
  queue.TakeFirst(kNow, Any);
  EXPECT_EQ(metrics_.Get().queued_tokens, 0);
}

TEST_F(AdmissionQueueTest, TheOldestWantedOneIsTakenAndOthersKeepTheirPlace) {
  AdmissionQueue queue(Options(5, 100), &metrics_);
  for (int tokens : {4, 2, 3, 2}) ASSERT_TRUE(Push(queue, tokens).ok());
  const auto taken = queue.TakeFirst(kNow, [](const QueuedTurn& queued) {
    return queued.turn.input.size() < 4;
  });
  EXPECT_EQ(taken->turn.input.size(), 2u);
  EXPECT_EQ(queue.TakeFirst(kNow, Any)->turn.input.size(), 4u);
  EXPECT_EQ(queue.TakeFirst(kNow, Any)->turn.input.size(), 3u);
}

TEST_F(AdmissionQueueTest, SaysWhenTheOldestTurnCame) {
  AdmissionQueue queue(Options(5, 100), &metrics_);
  EXPECT_EQ(queue.OldestSubmitted(), absl::InfiniteDuration());
  for (int tokens : {4, 9}) ASSERT_TRUE(Push(queue, tokens).ok());
  EXPECT_EQ(queue.OldestSubmitted(), absl::Seconds(4));
  queue.TakeFirst(kNow, Any);
  EXPECT_EQ(queue.OldestSubmitted(), absl::Seconds(9));
}

TEST_F(AdmissionQueueTest, CallsAreBounded) {
  AdmissionQueue queue(Options(2, 100), &metrics_);
  ASSERT_TRUE(Push(queue, 1).ok());
  ASSERT_TRUE(Push(queue, 1).ok());
  const absl::Status full = Push(queue, 1);
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(GetErrorDetails(full).reason, "QUEUE_FULL");
  EXPECT_EQ(GetErrorDetails(full).retry, absl::Seconds(3));
  queue.TakeFirst(kNow, Any);
  EXPECT_TRUE(Push(queue, 1).ok());
}

TEST_F(AdmissionQueueTest, TokensAreBoundedButOnePromptAlwaysFits) {
  AdmissionQueue queue(Options(9, 10), &metrics_);
  ASSERT_TRUE(Push(queue, 6).ok());
  EXPECT_FALSE(Push(queue, 5).ok());
  EXPECT_TRUE(Push(queue, 4).ok());
  queue.TakeFirst(kNow, Any);
  queue.TakeFirst(kNow, Any);
  EXPECT_TRUE(Push(queue, 11).ok());
  EXPECT_FALSE(Push(queue, 1).ok());
}

TEST_F(AdmissionQueueTest, CountersFollowEveryChange) {
  AdmissionQueue queue(Options(2, 100), &metrics_);
  ASSERT_TRUE(Push(queue, 6).ok());
  ASSERT_TRUE(Push(queue, 5).ok());
  EXPECT_FALSE(Push(queue, 5).ok());
  EXPECT_EQ(metrics_.Get().turns_started, 2);
  EXPECT_EQ(metrics_.Get().turns_active, 2);
  EXPECT_EQ(metrics_.Get().queued_calls, 2);
  EXPECT_EQ(metrics_.Get().queued_tokens, 11);
  queue.TakeFirst(kNow, Any);
  EXPECT_EQ(metrics_.Get().turns_active, 2);
  EXPECT_EQ(metrics_.Get().queued_calls, 1);
  EXPECT_EQ(metrics_.Get().queued_tokens, 5);
}

TEST_F(AdmissionQueueTest, EveryTurnThatLeavesHasItsTimeInTheQueue) {
  AdmissionQueue queue(Options(5, 100), &metrics_);
  for (int seconds : {4, 2}) ASSERT_TRUE(Push(queue, seconds).ok());
  queue.TakeFirst(absl::Seconds(5), Any);
  EXPECT_EQ(metrics_.Get().distributions.queue_seconds.count(), 1);
  queue.TakeFirst(absl::Seconds(9), Any);
  EXPECT_EQ(metrics_.Get().distributions.queue_seconds.count(), 2);
  EXPECT_EQ(metrics_.Get().distributions.queue_seconds.sum(), 1 + 7);
  EXPECT_EQ(BrokenLaws(metrics_.Get()), std::vector<std::string>());
}

TEST_F(AdmissionQueueTest, ATurnThatCameAfterTheLookAtTheClockHasNotWaited) {
  AdmissionQueue queue(Options(5, 100), &metrics_);
  ASSERT_TRUE(Push(queue, 4).ok());
  queue.TakeFirst(absl::Seconds(3), Any);
  EXPECT_EQ(metrics_.Get().distributions.queue_seconds.sum(), 0);
}

TEST_F(AdmissionQueueTest, ARefusedTurnIsStillTheCallers) {
  AdmissionQueue queue(Options(1, 100), &metrics_);
  ASSERT_TRUE(Push(queue, 1).ok());
  Turn turn = NewTurn(3);
  EXPECT_FALSE(queue.Push(turn, absl::ZeroDuration()).ok());
  EXPECT_EQ(turn.input.size(), 3u);
  EXPECT_EQ(turn.lease.position(), 0);
}

TEST_F(AdmissionQueueTest, AClosedQueueTakesNothingAndKeepsWhatItHas) {
  AdmissionQueue queue(Options(5, 100), &metrics_);
  ASSERT_TRUE(Push(queue, 1).ok());
  queue.Close();
  EXPECT_EQ(GetErrorDetails(Push(queue, 1)).reason, "DRAINING");
  EXPECT_TRUE(queue.TakeFirst(kNow, Any).has_value());
}

TEST_F(AdmissionQueueTest, TheEarliestDeadlineIsKnown) {
  AdmissionQueue queue(Options(5, 100), &metrics_);
  EXPECT_EQ(queue.EarliestDeadline(), absl::InfiniteDuration());
  for (int seconds : {9, 4, 7}) {
    Turn turn = NewTurn(1);
    turn.deadline = absl::Seconds(seconds);
    ASSERT_TRUE(queue.Push(turn, absl::ZeroDuration()).ok());
  }
  EXPECT_EQ(queue.EarliestDeadline(), absl::Seconds(4));
}

}  // namespace
}  // namespace txl
