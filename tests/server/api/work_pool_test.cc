// What work goes through: the fair queue, the pool, the list of calls that
// wait, the limit of lines.

#include "server/api/work_pool.h"

#include <gmock/gmock.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "server/api/call_desk.h"
#include "server/api/limits.h"
#include "tests/fakes/fake_clock.h"
#include "tests/server/api/convert_fixture.h"

namespace txl {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<int> PopAll(FairQueue<int>& queue) {
  std::vector<int> items;
  while (!queue.empty()) items.push_back(queue.Pop());
  return items;
}

TEST(FairQueue, KeepsTheOrderOfALane) {
  FairQueue<int> queue(10);
  for (const int item : {1, 2, 3}) EXPECT_FALSE(queue.Push("a", item));
  EXPECT_EQ(queue.size(), 3u);
  EXPECT_THAT(PopAll(queue), ElementsAre(1, 2, 3));
}

TEST(FairQueue, LetsLanesTakeTurns) {
  FairQueue<int> queue(10);
  for (const int item : {1, 2, 3, 4}) queue.Push("many", item);
  queue.Push("one", 10);
  queue.Push("two", 20);
  queue.Push("two", 21);
  EXPECT_THAT(PopAll(queue), ElementsAre(1, 10, 20, 2, 21, 3, 4));
}

TEST(FairQueue, ALaneThatIsEmptyAgainStartsBehindTheOthers) {
  FairQueue<int> queue(10);
  queue.Push("a", 1);
  EXPECT_EQ(queue.Pop(), 1);
  queue.Push("b", 2);
  queue.Push("b", 3);
  queue.Push("a", 4);
  EXPECT_THAT(PopAll(queue), ElementsAre(2, 4, 3));
}

TEST(FairQueue, RefusesTheLaneThatHasMost) {
  FairQueue<int> queue(3);
  for (const int item : {1, 2, 3}) queue.Push("many", item);
  EXPECT_EQ(queue.Push("many", 4), std::optional<int>(4));
  EXPECT_EQ(queue.Push("one", 5), std::optional<int>(3));
  EXPECT_EQ(queue.Push("one", 6), std::optional<int>(6));  // two would be most
  EXPECT_THAT(PopAll(queue), ElementsAre(1, 5, 2));
}

TEST(FairQueue, OfLanesWithOneItemEachRefusesTheNewOne) {
  FairQueue<int> queue(2);
  queue.Push("a", 1);
  queue.Push("b", 2);
  EXPECT_EQ(queue.Push("c", 3), std::optional<int>(3));
  EXPECT_THAT(PopAll(queue), ElementsAre(1, 2));
}

// A pool whose thread does nothing until it is released.
class HeldPool {
 public:
  explicit HeldPool(WorkPoolOptions options = {}) : pool_(options, &clock_) {
    pool_.Run("holder", [this](const absl::Status&) {
      held_.Notify();
      go_on_.WaitForNotification();
    });
    held_.WaitForNotification();
  }
  ~HeldPool() { Release(); }
  void Release() {
    if (!go_on_.HasBeenNotified()) go_on_.Notify();
  }
  // Queues a task that writes down what became of it.
  void Run(const std::string& peer, std::vector<std::string>* outcomes) {
    pool_.Run(peer, [peer, outcomes](const absl::Status& status) {
      outcomes->push_back(peer + " " + Refusal(status));
    });
  }
  void WaitForAll() {
    Release();
    while (pool_.counts().queued + pool_.counts().running > 0) {
      absl::SleepFor(absl::Milliseconds(1));
    }
  }

  FakeClock clock_;
  absl::Notification held_;
  absl::Notification go_on_;
  WorkPool pool_;  // last: runs what waits
};

TEST(WorkPool, RunsPeersInTurn) {
  std::vector<std::string> outcomes;
  HeldPool held;
  for (const char* peer : {"a", "a", "a", "b"}) held.Run(peer, &outcomes);
  EXPECT_EQ(held.pool_.counts().queued, 4);
  EXPECT_EQ(held.pool_.counts().running, 1);
  held.WaitForAll();
  EXPECT_THAT(outcomes, ElementsAre("a OK", "b OK", "a OK", "a OK"));
}

TEST(WorkPool, RefusesWhatFindsNoRoom) {
  std::vector<std::string> outcomes;
  WorkPoolOptions options = {.longest_queue = 2};
  HeldPool held(options);
  for (const char* peer : {"a", "a", "a"}) held.Run(peer, &outcomes);
  EXPECT_THAT(outcomes, ElementsAre("a RESOURCE_EXHAUSTED OVERLOADED"));
  held.Run("b", &outcomes);  // in place of the second of a
  EXPECT_EQ(outcomes.size(), 2u);
  EXPECT_EQ(held.pool_.counts().refused, 2);
  held.Release();
}

TEST(WorkPool, RefusesWhatWaitedTooLong) {
  std::vector<std::string> outcomes;
  WorkPoolOptions options = {.longest_wait = absl::Seconds(3)};
  HeldPool held(options);
  held.Run("a", &outcomes);
  held.clock_.Advance(absl::Seconds(2));
  held.Run("b", &outcomes);
  held.clock_.Advance(absl::Seconds(2));
  held.WaitForAll();
  EXPECT_THAT(outcomes, ElementsAre("a RESOURCE_EXHAUSTED OVERLOADED", "b OK"));
  EXPECT_EQ(held.pool_.counts().refused, 1);
}

TEST(WorkPool, ARefusalSaysWhenToTryAgain) {
  EXPECT_EQ(GetErrorDetails(OverloadedError("m", absl::Seconds(2))).retry,
            absl::Seconds(2));
}

TEST(WorkPool, RunsWhatWaitsBeforeItEnds) {
  std::vector<std::string> outcomes;
  {
    HeldPool held;
    held.Run("a", &outcomes);
  }
  EXPECT_THAT(outcomes, ElementsAre("a OK"));
}

TEST(WorkPool, HasOneThreadOnASmallMachine) {
  EXPECT_EQ(WorkThreads(1), 1);
  EXPECT_EQ(WorkThreads(2), 1);
  EXPECT_EQ(WorkThreads(8), 4);
  EXPECT_EQ(WorkThreads(256), 8);
}

TEST(WaitList, GivesTheOldestThatCameBeforeATime) {
  WaitList<int> list;
  std::vector<std::shared_ptr<int>> calls;
  for (int i = 0; i < 4; ++i) {
    calls.push_back(std::make_shared<int>(i));
    list.Add(calls.back(), absl::Seconds(i));
  }
  const auto taken = list.Take(absl::Seconds(3), 2);
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_EQ(*taken[0], 0);
  EXPECT_EQ(*taken[1], 1);
  EXPECT_EQ(list.Take(absl::Seconds(3), 9).size(), 1u);
  EXPECT_EQ(list.size(), 1);
}

TEST(WaitList, OneTakerOnlyGetsACall) {
  WaitList<int> list;
  const auto call = std::make_shared<int>(1);
  const auto place = list.Add(call, absl::Seconds(1));
  EXPECT_TRUE(list.Remove(place));
  EXPECT_FALSE(list.Remove(place));
  EXPECT_THAT(list.Take(absl::Seconds(2), 9), IsEmpty());
}

TEST(LineLimit, CountsWhatItLeavesOut) {
  LineLimit limit(2);
  EXPECT_EQ(limit.Take(absl::Seconds(1)), std::optional<int64_t>(0));
  EXPECT_EQ(limit.Take(absl::Seconds(1.5)), std::optional<int64_t>(0));
  for (int i = 0; i < 7; ++i) {
    EXPECT_EQ(limit.Take(absl::Seconds(1.9)), std::nullopt);
  }
  EXPECT_EQ(limit.Take(absl::Seconds(2)), std::optional<int64_t>(7));
  EXPECT_EQ(limit.Take(absl::Seconds(2)), std::optional<int64_t>(0));
}

}  // namespace
}  // namespace txl
