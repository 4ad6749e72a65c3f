// Turns of several tenants: who gets slots, rows and places in the queue.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/server/scheduler/scheduler_world.h"

namespace txl {
namespace {

class SchedulerTenants : public ::testing::Test {
 protected:
  TenantAccount* Tenant(const std::string& name, double weight = 1) {
    auto& account = accounts_[name];
    if (account == nullptr) {
      TenantLimits limits;
      limits.weight = weight;
      account = std::make_unique<TenantAccount>(name, limits, -1,
                                                absl::ZeroDuration());
    }
    return account.get();
  }
  // A turn of the tenant, in a session of its own that ends with it.
  TestTurn Generate(World& world, TenantAccount* tenant, int max_tokens,
                    int prompt = 3) {
    return world.Generate("", World::SomeIds(prompt, salt_++), max_tokens,
                          [tenant](Turn& turn) { turn.account = tenant; });
  }
  // Tokens that tenants a, b and c of weights 1, 2 and 4 have after so many
  // steps in which each has turns waiting.
  std::map<std::string, int64_t> Overload(WorldOptions options, int steps) {
    options.scheduler.max_queued_calls = 1000;
    World world(options);
    const std::map<std::string, double> weights = {
        {"a", 1}, {"b", 2}, {"c", 4}};
    std::map<std::string, std::vector<TestTurn>> turns;
    for (int step = 0; step < steps; ++step) {
      for (const auto& [name, weight] : weights) {
        std::vector<TestTurn>& own = turns[name];
        const auto waiting =
            std::count_if(own.begin(), own.end(), [](const TestTurn& turn) {
              return !turn.sink->finished().has_value();
            });
        for (auto n = waiting; n < 12; ++n) {
          own.push_back(Generate(world, Tenant(name, weight), 10 + step % 7));
        }
      }
      world.Step();
    }
    std::map<std::string, int64_t> tokens;
    for (const auto& [name, own] : turns) {
      for (const TestTurn& turn : own) {
        tokens[name] += static_cast<int64_t>(turn.sink->tokens().size());
        turn.cancel->Cancel(CancelToken::Why::kCancelled);
      }
    }
    world.Run();
    world.ExpectAtRest();
    return tokens;
  }
  static void ExpectOneTwoFour(const std::map<std::string, int64_t>& tokens) {
    const auto a = static_cast<double>(tokens.at("a"));
    EXPECT_NEAR(static_cast<double>(tokens.at("b")) / a, 2, 2 * 0.05);
    EXPECT_NEAR(static_cast<double>(tokens.at("c")) / a, 4, 4 * 0.05);
  }

  std::map<std::string, std::unique_ptr<TenantAccount>> accounts_;
  int salt_ = 0;
};

TEST_F(SchedulerTenants, WeightsShareOneSlot) {
  ExpectOneTwoFour(Overload(OneSlot(), 12'000));
}

TEST_F(SchedulerTenants, WeightsShareSlots) {
  WorldOptions options;
  options.runner.slots = 5;
  ExpectOneTwoFour(Overload(options, 4'000));
}

TEST_F(SchedulerTenants, WeightsShareTheRowsOfSteps) {
  WorldOptions options;
  options.runner.slots = 64;
  options.runner.max_rows = 6;
  ExpectOneTwoFour(Overload(options, 4'000));
}

TEST_F(SchedulerTenants, AFullQueueLosesTheLastTurnOfWhoHasMost) {
  WorldOptions options = OneSlot();
  options.scheduler.max_queued_calls = 4;
  World world(options);
  TestTurn running = Generate(world, Tenant("a"), 200);
  world.Step();
  std::vector<TestTurn> a;
  for (int i = 0; i < 4; ++i) a.push_back(Generate(world, Tenant("a"), 2));
  EXPECT_EQ(Outcome(Generate(world, Tenant("a"), 2).submitted),
            "RESOURCE_EXHAUSTED QUEUE_FULL");
  const TestTurn first = Generate(world, Tenant("b"), 2);
  EXPECT_TRUE(first.submitted.ok());
  const TestTurn second = Generate(world, Tenant("b"), 2);
  EXPECT_TRUE(second.submitted.ok());
  EXPECT_EQ(Outcome(Generate(world, Tenant("b"), 2).submitted),
            "RESOURCE_EXHAUSTED QUEUE_FULL");
  world.Run();
  EXPECT_EQ(Outcome(a[3].sink->failed()), "RESOURCE_EXHAUSTED QUEUE_FULL");
  EXPECT_EQ(Outcome(a[2].sink->failed()), "RESOURCE_EXHAUSTED QUEUE_FULL");
  for (const TestTurn& kept : {a[0], a[1], first, second, running}) {
    EXPECT_TRUE(kept.sink->finished().has_value());
  }
  world.ExpectAtRest();
}

// A has 255 streams where B comes with one: B's first token and its pace, in
// steps, are those that it has alone.
TEST_F(SchedulerTenants, OneStreamBesideTwoHundredFiftyFiveIsAsIfAlone) {
  struct Pace {
    int first = 0;  // step of the first token
    int last = 0;
  };
  const auto pace_beside = [this](int others) {
    WorldOptions options;
    options.runner.slots = 512;
    options.runner.max_rows = 512;
    World world(options);
    std::vector<TestTurn> a;
    for (int i = 0; i < others; ++i) {
      a.push_back(Generate(world, Tenant("a"), 400, 1 + i % 60));
    }
    for (int i = 0; i < 20; ++i) world.Step();
    // Newcomers of A keep the prompts' rows busy when B comes.
    for (int i = 0; i < others; ++i) {
      a.push_back(Generate(world, Tenant("a"), 400, 60));
    }
    const TestTurn b = Generate(world, Tenant("b"), 64, 100);
    Pace pace;
    for (int step = 1; !b.sink->finished().has_value() && step < 2000; ++step) {
      world.Step();
      if (pace.first == 0 && !b.sink->tokens().empty()) pace.first = step;
      pace.last = step;
    }
    EXPECT_EQ(b.sink->tokens().size(), 64u);
    return pace;
  };
  const Pace alone = pace_beside(0);
  const Pace beside = pace_beside(255);
  EXPECT_LE(beside.first, 1.3 * alone.first);
  EXPECT_LE(beside.last - beside.first, 1.3 * (alone.last - alone.first));
}

}  // namespace

}  // namespace txl
