// How long the loop may sleep: until the first thing that happens by itself.

#include <memory>
#include <optional>

#include "gtest/gtest.h"
#include "server/scheduler/scheduler_loop.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/fake_step_runner.h"
#include "tests/fakes/recording_sink.h"

namespace txl {
namespace {

constexpr absl::Duration kExpiryLook = absl::Seconds(1);

FakeStepRunnerOptions OneSlotRunner() { return {.slots = 1}; }

class SchedulerLimits : public ::testing::Test {
 protected:
  void Build() {
    AdmissionQueueOptions queue;
    queue.max_calls = 8;
    queue.max_tokens = 1000;
    shared_ = std::make_unique<SchedulerShared>(queue, &metrics_);
    loop_ = std::make_unique<SchedulerLoop>(
        options_, SchedulerParts{&runner_, &store_, &metrics_, &clock_},
        shared_.get());
  }
  std::shared_ptr<RecordingSink> Push(std::optional<absl::Duration> deadline) {
    auto sink = std::make_shared<RecordingSink>();
    Turn turn{.kind = TurnKind::kGenerate,
              .lease = *store_.AcquireTemporary(),
              .input = {1, 2},
              .sampling = {},
              .stop = {},
              .identity = {},
              .resumed = nullptr,
              .deadline = deadline,
              .sink = sink,
              .cancel = nullptr};
    turn.stop.max_tokens = 1000;
    ++shared_->live_turns;
    EXPECT_TRUE(shared_->queue.Push(turn, clock_.Monotonic()).ok());
    return sink;
  }
  void Rest() {
    while (loop_->Iterate()) {
    }
  }

  FakeClock clock_;
  Metrics metrics_;
  FakeStepRunner runner_{OneSlotRunner()};
  SessionStore store_{SessionStoreOptions(), &clock_};
  SchedulerOptions options_;
  std::unique_ptr<SchedulerShared> shared_;
  std::unique_ptr<SchedulerLoop> loop_;
};

TEST_F(SchedulerLimits, AnIdleLoopLooksForExpiredSessionsEachSecond) {
  Build();
  Rest();
  EXPECT_EQ(loop_->NextLimit(), kExpiryLook);
  ASSERT_TRUE(store_.Create("a", absl::Seconds(1)).ok());
  clock_.Advance(absl::Milliseconds(1000));
  EXPECT_EQ(loop_->NextLimit(), absl::ZeroDuration());
  EXPECT_FALSE(loop_->Iterate());
  EXPECT_EQ(store_.counts().idle, 0);
  EXPECT_EQ(loop_->NextLimit(), kExpiryLook);
}

// Everything else is further away than the next look.
class SchedulerOwnLimits : public SchedulerLimits {
 protected:
  SchedulerOwnLimits() {
    options_.park_events = 4;
    options_.slow_reader_limit = absl::Milliseconds(900);
    options_.rate_window = absl::Milliseconds(800);
    options_.least_rate = 100;
    options_.longest_turn = absl::Milliseconds(700);
    options_.queue_limit = absl::Milliseconds(600);
  }
  // One turn that runs and has lagged from the start.
  void Park() {
    Build();
    const auto sink = Push(std::nullopt);
    sink->StopReading();
    Rest();
    EXPECT_EQ(sink->Unsent(), 4);
  }
};

TEST_F(SchedulerOwnLimits, AReaderThatReadsNothingEndsTheSleep) {
  options_.rate_window = options_.longest_turn = absl::Hours(1);
  Park();
  EXPECT_EQ(loop_->NextLimit(), absl::Milliseconds(900));
}

TEST_F(SchedulerOwnLimits, TheWindowOfASlowReaderEndsTheSleep) {
  options_.longest_turn = absl::Hours(1);
  Park();
  EXPECT_EQ(loop_->NextLimit(), absl::Milliseconds(800));
}

TEST_F(SchedulerOwnLimits, TheLongestTurnEndsTheSleep) {
  Park();
  EXPECT_EQ(loop_->NextLimit(), absl::Milliseconds(700));
}

TEST_F(SchedulerOwnLimits, TheLongestWaitInTheQueueEndsTheSleep) {
  options_.min_idle = absl::Hours(1);  // the parked one stays
  Park();
  Push(std::nullopt);
  Rest();
  EXPECT_EQ(loop_->NextLimit(), absl::Milliseconds(600));
}

TEST_F(SchedulerOwnLimits, ADeadlineEndsTheSleep) {
  options_.min_idle = absl::Hours(1);
  Park();
  Push(clock_.Monotonic() + absl::Milliseconds(500));
  Rest();
  EXPECT_EQ(loop_->NextLimit(), absl::Milliseconds(500));
}

}  // namespace
}  // namespace txl
