#include "server/quota/tenants.h"

#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace txl {
namespace {

constexpr absl::Duration kAnyTime = absl::Seconds(50);

class TenantsTest : public ::testing::Test {
 protected:
  static TenantLimits Weight(double weight) {
    TenantLimits limits;
    limits.weight = weight;
    return limits;
  }

  std::vector<std::string> counted_;
  Tenants tenants_{[this](const std::string& name) {
    counted_.push_back(name);
    return static_cast<int32_t>(counted_.size()) - 1;
  }};
};

TEST_F(TenantsTest, OnlyThoseOfTheFileHaveCountersOfTheirOwn) {
  tenants_.SetLimits({{"a", Weight(2)}, {"b", Weight(3)}}, kAnyTime);
  EXPECT_EQ(tenants_.Find("b", kAnyTime)->weight(), 3);
  EXPECT_EQ(tenants_.Find("x", kAnyTime)->weight(), 1);
  EXPECT_EQ(tenants_.Find("y", kAnyTime)->counts(), 0);
  EXPECT_EQ(tenants_.Find("x", kAnyTime)->counts(), 0);
  EXPECT_EQ(counted_, (std::vector<std::string>{"other", "a", "b"}));
  EXPECT_EQ(tenants_.Find("b", kAnyTime)->counts(), 2);
}

TEST_F(TenantsTest, AnAccountStaysTheSame) {
  TenantAccount* const x = tenants_.Find("x", kAnyTime);
  tenants_.SetLimits({{"x", Weight(4)}}, kAnyTime);
  EXPECT_EQ(tenants_.Find("x", kAnyTime), x);
  EXPECT_EQ(x->weight(), 4);
  EXPECT_EQ(x->name(), "x");
}

TEST_F(TenantsTest, WhoEntersTheFileLaterIsCountedApartFromThen) {
  TenantAccount* const x = tenants_.Find("x", kAnyTime);
  EXPECT_EQ(x->counts(), 0);
  tenants_.SetLimits({{"x", Weight(1)}}, kAnyTime);
  EXPECT_EQ(x->counts(), 1);
  tenants_.SetLimits({}, kAnyTime);
  tenants_.SetLimits({{"x", Weight(1)}}, kAnyTime);
  EXPECT_EQ(x->counts(), 1);
  EXPECT_EQ(counted_, (std::vector<std::string>{"other", "x"}));
}

TEST_F(TenantsTest, AllThatAreInTheFileOrHaveCalledSayWhatTheyHaveTaken) {
  tenants_.SetLimits({{"b", Weight(3)}}, kAnyTime);
  ASSERT_TRUE(tenants_.Find("a", kAnyTime)->StartTurn(1, kAnyTime).ok());
  const std::vector<TenantUse> all = tenants_.Use(kAnyTime);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].tenant, "a");
  EXPECT_EQ(all[0].turns, 1);
  EXPECT_EQ(all[1].tenant, "b");
  EXPECT_EQ(all[1].limits.weight, 3);
}

TEST_F(TenantsTest, WhoLeavesTheFileLosesItsLimits) {
  TenantLimits limits;
  limits.turns = 1;
  tenants_.SetLimits({{"a", limits}}, kAnyTime);
  TenantAccount* const a = tenants_.Find("a", kAnyTime);
  ASSERT_TRUE(a->StartTurn(1, kAnyTime).ok());
  EXPECT_FALSE(a->StartTurn(1, kAnyTime).ok());
  tenants_.SetLimits({}, kAnyTime);
  EXPECT_TRUE(a->StartTurn(1, kAnyTime).ok());
  tenants_.SetLimits({{"a", limits}}, kAnyTime);
  a->EndTurn();
  EXPECT_FALSE(a->StartTurn(1, kAnyTime).ok());
}

}  // namespace
}  // namespace txl
