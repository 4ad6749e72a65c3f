#include "server/api/token_stream.h"

#include <gtest/gtest.h>

#include <optional>

namespace txl {
namespace {

TokenEvent TokenAt(int64_t index) {
  TokenEvent token;
  token.index = index;
  return token;
}

TEST(EventQueue, GivesEventsInTheOrderTheyCame) {
  Metrics metrics;
  EventQueue queue(&metrics);
  EXPECT_TRUE(queue.empty());
  queue.Push(TurnStarted());
  queue.Push(TokenAt(0));
  queue.Push(TokenAt(1));
  queue.Push(TurnFinished());
  EXPECT_EQ(queue.size(), 4u);
  EXPECT_FALSE(queue.token_is_next());
  EXPECT_TRUE(std::holds_alternative<TurnStarted>(queue.Pop()));
  for (const int64_t index : {0, 1}) {
    EXPECT_TRUE(queue.token_is_next());
    EXPECT_EQ(std::get<TokenEvent>(queue.Pop()).index, index);
  }
  EXPECT_FALSE(queue.token_is_next());
  EXPECT_TRUE(std::holds_alternative<TurnFinished>(queue.Pop()));
  EXPECT_TRUE(queue.empty());
  EXPECT_FALSE(queue.token_is_next());
}

TEST(EventQueue, OnlyTokensAreCountedAndOnlyWhileTheyWait) {
  Metrics metrics;
  const auto waiting = [&] { return metrics.Get().stream_queue_tokens; };
  EventQueue queue(&metrics);
  queue.Push(TurnStarted());
  EXPECT_EQ(waiting(), 0);
  queue.Push(TokenAt(0));
  queue.Push(TokenAt(1));
  queue.Push(TurnFinished());
  EXPECT_EQ(waiting(), 2);
  queue.Pop();  // started
  EXPECT_EQ(waiting(), 2);
  queue.Pop();
  EXPECT_EQ(waiting(), 1);
  queue.Pop();
  EXPECT_EQ(waiting(), 0);
  queue.Pop();  // finished
  EXPECT_EQ(waiting(), 0);
}

TEST(EventQueue, TheTokensOfAllQueuesAreCountedTogether) {
  Metrics metrics;
  const auto waiting = [&] { return metrics.Get().stream_queue_tokens; };
  EventQueue first(&metrics);
  std::optional<EventQueue> second;
  second.emplace(&metrics);
  for (int i = 0; i < 3; ++i) first.Push(TokenAt(i));
  for (int i = 0; i < 4; ++i) second->Push(TokenAt(i));
  EXPECT_EQ(waiting(), 7);
  first.Clear();
  EXPECT_TRUE(first.empty());
  EXPECT_EQ(waiting(), 4);
  first.Clear();
  EXPECT_EQ(waiting(), 4);
  second.reset();  // with what is in it
  EXPECT_EQ(waiting(), 0);
}

}  // namespace

}  // namespace txl
