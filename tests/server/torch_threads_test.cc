#include "server/torch_threads.h"

#include "gtest/gtest.h"

namespace txl {
namespace {

constexpr int64_t kSmall = 4'000'000;
constexpr int64_t kLarge = 285'000'000;

TEST(ChooseTorchThreads, WhatTheOperatorSaysCounts) {
  EXPECT_EQ(ChooseTorchThreads(3, 8, kSmall), 3);
  EXPECT_EQ(ChooseTorchThreads(1, 8, kLarge), 1);
}

TEST(ChooseTorchThreads, ASmallModelGetsOneThread) {
  EXPECT_EQ(ChooseTorchThreads(0, 8, kSmall), 1);
}

TEST(ChooseTorchThreads, ALargeModelGetsEveryCore) {
  EXPECT_EQ(ChooseTorchThreads(0, 8, kLarge), 8);
}

TEST(ChooseTorchThreads, AnUnknownNumberOfCoresIsOne) {
  EXPECT_EQ(ChooseTorchThreads(0, 0, kLarge), 1);
}

}  // namespace
}  // namespace txl
