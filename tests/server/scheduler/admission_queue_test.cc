#include "server/scheduler/admission_queue.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <string>
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

std::string First(const FairOrder& order) {
  return order.line().begin()->second;
}

// The next flow gets service of this cost.
std::string Serve(FairOrder& order, double cost) {
  const std::string flow = First(order);
  order.Charge(flow, cost);
  return flow;
}

TEST(FairOrder, FlowsOfOneWeightTakeTurns) {
  FairOrder order;
  for (const char* flow : {"b", "a", "c"}) order.Join(flow, 1);
  std::string served;
  for (int i = 0; i < 6; ++i) served += Serve(order, 7);
  EXPECT_EQ(served, "abcabc");
}

TEST(FairOrder, WeightsOneTwoFourGetServiceOneTwoFour) {
  FairOrder order;
  const std::map<std::string, double> weights = {{"a", 1}, {"b", 2}, {"c", 4}};
  for (const auto& [flow, weight] : weights) order.Join(flow, weight);
  std::map<std::string, double> got;
  std::mt19937 random(5);
  for (int i = 0; i < 7000; ++i) {
    const double cost = 1 + random() % 200;
    got[Serve(order, cost)] += cost;
  }
  EXPECT_NEAR(got["b"] / got["a"], 2, 2 * 0.05);
  EXPECT_NEAR(got["c"] / got["a"], 4, 4 * 0.05);
}

TEST(FairOrder, WhoWantedNothingHasNoCreditForIt) {
  FairOrder order;
  order.Join("late", 1);
  order.Leave("late");
  order.Join("busy", 1);
  for (int i = 0; i < 100; ++i) Serve(order, 10);
  order.Join("late", 1);
  std::string served;
  for (int i = 0; i < 6; ++i) served += Serve(order, 10)[0];
  EXPECT_EQ(served, "lblblb");
}

TEST(FairOrder, LeavingAndComingBackGainsNothing) {
  FairOrder order;
  order.Join("greedy", 1);
  order.Join("other", 1);
  std::map<std::string, int> got;
  for (int i = 0; i < 100; ++i) {
    const std::string served = Serve(order, 10);
    ++got[served];
    if (served != "greedy") continue;
    order.Leave("greedy");
    order.Join("greedy", 1);
  }
  EXPECT_EQ(got["greedy"], 50);
}

TEST(FairOrder, WhatWasNotUsedComesBack) {
  FairOrder order;
  order.Join("a", 1);
  order.Join("b", 1);
  order.Charge("a", 100);
  order.Charge("b", 10);
  EXPECT_EQ(First(order), "b");
  order.Refund("a", 95);
  EXPECT_EQ(First(order), "a");
}

TEST(FairOrder, AFlowOutOfLineIsChargedToo) {
  FairOrder order;
  order.Join("a", 1);
  order.Join("b", 1);
  order.Leave("a");
  order.Charge("a", 100);
  order.Join("a", 1);
  EXPECT_EQ(First(order), "b");
}

TEST(FairOrder, ANewWeightCountsFromThenOn) {
  FairOrder order;
  order.Join("a", 1);
  order.Join("b", 1);
  for (int i = 0; i < 10; ++i) Serve(order, 1);
  order.Join("a", 3);
  std::map<std::string, int> got;
  for (int i = 0; i < 400; ++i) ++got[Serve(order, 1)];
  EXPECT_NEAR(got["a"], 300, 3);
}

TEST(FairOrder, FlowsThatAreLongGoneAreForgotten) {
  FairOrder order;
  order.Join("stays", 1);
  for (int i = 0; i < 1000; ++i) {
    const std::string flow = "f" + std::to_string(i);
    order.Join(flow, 1);
    order.Charge(flow, 1);
    order.Leave(flow);
    Serve(order, 1);
  }
  EXPECT_LE(order.size(), 4u);
}

TEST(FairOrder, AfterClearEverybodyBeginsAnew) {
  FairOrder order;
  order.Join("a", 1);
  order.Charge("a", 100);
  order.Clear();
  EXPECT_TRUE(order.line().empty());
  order.Join("a", 1);
  order.Join("b", 1);
  EXPECT_EQ(First(order), "a");
}

// A thousand tenants of random weights, each of which now wants something and
// now does not, with turns of random lengths.
class Market {
 public:
  explicit Market(uint32_t seed) : random_(seed), tenants_(1000) {
    for (size_t i = 0; i < tenants_.size(); ++i) {
      tenants_[i].name = "t" + std::to_string(i);
      tenants_[i].weight = 1 + static_cast<double>(random_() % 64) / 4;
      tenants_[i].restless = random_() % 3 == 0;
      order_.Join(tenants_[i].name, tenants_[i].weight);
    }
  }

  void ServeOnce() {
    const double cost = 1 + random_() % kMostCost;
    Tenant& tenant = tenants_[std::stoul(First(order_).substr(1))];
    order_.Charge(tenant.name, cost);
    tenant.got += cost;
    tenant.waited = 0;
    for (Tenant& other : tenants_) {
      if (&other != &tenant && !other.away) other.waited += cost;
      other.longest = std::max(other.longest, other.waited);
    }
    if (tenant.restless && random_() % 2 == 0) Swap(tenant);
    Swap(tenants_[random_() % tenants_.size()]);
  }

  // Those that never left differ by no more than admission_queue.h says.
  void ExpectFairness() const {
    for (const Tenant& a : tenants_) {
      if (a.restless) continue;
      for (const Tenant& b : tenants_) {
        if (b.restless) continue;
        ASSERT_LE(std::abs(a.got / a.weight - b.got / b.weight),
                  kMostCost / a.weight + kMostCost / b.weight + kRounding);
      }
    }
  }

  // While a tenant waits, what others get is bounded as admission_queue.h says.
  void ExpectNoStarvation() const {
    double weights = 0;
    for (const Tenant& tenant : tenants_) weights += tenant.weight;
    for (const Tenant& tenant : tenants_) {
      const double bound = kMostCost * (weights / tenant.weight +
                                        static_cast<double>(tenants_.size()));
      ASSERT_LE(tenant.longest, bound) << tenant.name;
    }
  }

 private:
  static constexpr uint32_t kMostCost = 300;
  static constexpr double kRounding = 1e-6;

  struct Tenant {
    std::string name;
    double weight = 1;
    bool restless = false;
    bool away = false;
    double got = 0;
    double waited = 0;   // served to others since it wanted something
    double longest = 0;  // of these
  };

  void Swap(Tenant& tenant) {
    if (!tenant.restless) return;
    tenant.away = !tenant.away;
    tenant.waited = 0;
    if (tenant.away) {
      order_.Leave(tenant.name);
    } else {
      order_.Join(tenant.name, tenant.weight);
    }
  }

  std::mt19937 random_;
  std::vector<Tenant> tenants_;
  FairOrder order_;
};

TEST(FairOrder, AThousandTenantsGetTheirSharesAndNobodyStarves) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    Market market(seed);
    for (int i = 0; i < 10'000; ++i) market.ServeOnce();
    market.ExpectFairness();
    market.ExpectNoStarvation();
  }
}

}  // namespace

}  // namespace txl
