#include "gtest/gtest.h"
#include "server/start_up.h"

namespace txl {
namespace {

constexpr int64_t kSmall = 4'000'000;
constexpr int64_t kLarge = 285'000'000;

TEST(ChooseThreads, WhatTheOperatorSaysCounts) {
  EXPECT_EQ(ChooseThreads(3, 8, kSmall), 3);
  EXPECT_EQ(ChooseThreads(1, 8, kLarge), 1);
}

TEST(ChooseThreads, ASmallModelGetsOneThread) {
  EXPECT_EQ(ChooseThreads(0, 8, kSmall), 1);
}

TEST(ChooseThreads, ALargeModelGetsEveryCore) {
  EXPECT_EQ(ChooseThreads(0, 8, kLarge), 8);
}

TEST(ChooseThreads, AnUnknownNumberOfCoresIsOne) {
  EXPECT_EQ(ChooseThreads(0, 0, kLarge), 1);
}

}  // namespace

}  // namespace txl
