#include "client/fleet/company.h"

#include <gtest/gtest.h>

namespace txl::fleet {
namespace {

// A step takes 10 ms for each stream and 1 ms for each of 20 rows of prompts.
DeviceCosts CompanyCosts() {
  return {*StepCosts::Parse({"1:0.010"}), 0.001, 20};
}

struct End {
  double time;
  int32_t turn;
};

End Next(Company& company) {
  const double time = company.NextEnd();
  return {time, company.PopNext()};
}

TEST(Company, HasNoEndWithoutTurns) {
  const DeviceCosts costs = CompanyCosts();
  Company company(&costs);
  EXPECT_EQ(company.NextEnd(), Company::kNever);
  EXPECT_EQ(company.StepSeconds(), 0);
  EXPECT_EQ(company.BusySeconds(7), 0);
}

// 10 tokens alone take 0.1 s. From 0.05 s on the second shares each step, so
// that the last 5 of the first take until 0.15 s; then 5 of the second are left
// and take 10 ms each.
TEST(Company, GivesEachStreamATokenAStep) {
  const DeviceCosts costs = CompanyCosts();
  Company company(&costs);
  company.AddStream(1, 10, 0);
  EXPECT_DOUBLE_EQ(company.NextEnd(), 0.1);
  company.AddStream(2, 10, 0.05);
  EXPECT_DOUBLE_EQ(company.StepSeconds(), 0.020);
  const End first = Next(company);
  EXPECT_EQ(first.turn, 1);
  EXPECT_NEAR(first.time, 0.15, 1e-12);
  const End second = Next(company);
  EXPECT_EQ(second.turn, 2);
  EXPECT_NEAR(second.time, 0.20, 1e-12);
}

// 40 rows are two steps, of 10 + 20 ms beside a stream.
TEST(Company, FeedsPromptsBesideStreams) {
  const DeviceCosts costs = CompanyCosts();
  Company company(&costs);
  company.AddStream(1, 3, 0);
  company.AddPrompt(2, 40, 0);
  EXPECT_NEAR(company.StepSeconds(), 0.030, 1e-12);
  const End prompt = Next(company);
  EXPECT_EQ(prompt.turn, 2);
  EXPECT_NEAR(prompt.time, 0.060, 1e-12);
  const End stream = Next(company);
  EXPECT_EQ(stream.turn, 1);
  EXPECT_NEAR(stream.time, 0.070, 1e-12);
}

// The long prompt has 50 rows left when the short one comes: it waits 20 ms.
TEST(Company, FeedsThePromptWithTheFewestRowsLeftFirst) {
  const DeviceCosts costs = CompanyCosts();
  Company company(&costs);
  company.AddPrompt(1, 100, 0);
  company.AddPrompt(2, 20, 0.050);
  const End first = Next(company);
  EXPECT_EQ(first.turn, 2);
  EXPECT_NEAR(first.time, 0.070, 1e-12);
  const End second = Next(company);
  EXPECT_EQ(second.turn, 1);
  EXPECT_NEAR(second.time, 0.120, 1e-12);
}

TEST(Company, IsBusyWhileSomebodyIsThere) {
  const DeviceCosts costs = CompanyCosts();
  Company company(&costs);
  company.AddStream(1, 10, 1);
  EXPECT_NEAR(company.BusySeconds(1.05), 0.05, 1e-12);
  company.PopNext();
  EXPECT_NEAR(company.BusySeconds(5), 0.1, 1e-12);
}

TEST(Company, IsGoneWhenItIsCleared) {
  const DeviceCosts costs = CompanyCosts();
  Company company(&costs);
  company.AddStream(1, 10, 0);
  company.AddPrompt(2, 10, 0);
  company.Clear(0.01);
  EXPECT_EQ(company.streams() + company.prompts(), 0);
  EXPECT_EQ(company.NextEnd(), Company::kNever);
  company.AddStream(3, 1, 2);
  EXPECT_NEAR(company.NextEnd(), 2.01, 1e-12);
}

}  // namespace
}  // namespace txl::fleet
