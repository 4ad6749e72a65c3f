#include "client/bench/run/stream_check.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/client/fake_service.h"

namespace txl::bench {
namespace {

using testing::FinishedEvent;
using testing::StartedEvent;
using testing::TokenEvent;
using testing::TurnEvents;
using Events = std::vector<v1::GenerateResponse>;

std::string Check(const Events& events,
                  const absl::Status& status = absl::OkStatus()) {
  StreamCheck check;
  for (const v1::GenerateResponse& event : events) check.Add(event);
  return check.End(status);
}

TEST(StreamCheck, FindsNothingInATurnAsItShouldBe) {
  EXPECT_EQ(Check(TurnEvents(3, "abcd")), "");
}

TEST(StreamCheck, CountsTokensOfBatchesToo) {
  v1::GenerateResponse batch;
  *batch.mutable_tokens()->add_tokens() = TokenEvent(0, 'a').token();
  *batch.mutable_tokens()->add_tokens() = TokenEvent(1, 'b').token();
  StreamCheck check;
  EXPECT_EQ(check.Add(StartedEvent(5, 2)), 0);
  EXPECT_EQ(check.Add(batch), 2);
  EXPECT_EQ(check.Add(TokenEvent(2, 'c')), 1);
  EXPECT_EQ(check.Add(FinishedEvent(10, 2, 3)), 0);
  EXPECT_EQ(check.End(absl::OkStatus()), "");
  EXPECT_EQ(check.tokens(), 3);
}

TEST(StreamCheck, AnErrorInsteadOfFinishedIsAnEndToo) {
  EXPECT_EQ(Check({}, absl::UnavailableError("")), "");
  EXPECT_EQ(
      Check({StartedEvent(0, 1), TokenEvent(0, 'a')}, absl::CancelledError("")),
      "");
}

TEST(StreamCheck, FindsAGapAndARepeatOfIndices) {
  EXPECT_EQ(
      Check({StartedEvent(0, 1), TokenEvent(1, 'a')}, absl::CancelledError("")),
      "index 1 where 0 was due");
  EXPECT_EQ(Check({StartedEvent(0, 1), TokenEvent(0, 'a'), TokenEvent(0, 'a')},
                  absl::CancelledError("")),
            "index 0 where 1 was due");
}

TEST(StreamCheck, FindsAMissingAndADoubleEnd) {
  EXPECT_EQ(Check({StartedEvent(0, 1)}), "OK without Finished");
  EXPECT_EQ(Check(TurnEvents(1, "a"), absl::InternalError("")),
            "an error after Finished");
  Events twice = TurnEvents(1, "a");
  twice.push_back(twice.back());
  EXPECT_EQ(Check(twice), "an event after Finished");
}

TEST(StreamCheck, FindsAMissingAndADoubleStart) {
  EXPECT_EQ(Check({TokenEvent(0, 'a')}, absl::CancelledError("")),
            "a token before Started");
  EXPECT_EQ(
      Check({StartedEvent(0, 1), StartedEvent(0, 1)}, absl::CancelledError("")),
      "Started twice");
  EXPECT_EQ(Check({FinishedEvent(0, 0, 0)}), "Finished before Started");
}

TEST(StreamCheck, FindsCountsThatDisagreeWithTheStream) {
  EXPECT_EQ(
      Check({StartedEvent(0, 1), TokenEvent(0, 'a'), FinishedEvent(2, 1, 2)}),
      "2 tokens reported, 1 received");
  EXPECT_EQ(
      Check({StartedEvent(4, 1), TokenEvent(0, 'a'), FinishedEvent(7, 1, 1)}),
      "position 7 after 4 + 1 + 1 tokens");
}

TEST(StreamCheck, KnowsWhetherFinishedHasCome) {
  StreamCheck check;
  check.Add(StartedEvent(0, 1));
  EXPECT_FALSE(check.finished());
  check.Add(FinishedEvent(1, 1, 0));
  EXPECT_TRUE(check.finished());
}

TEST(StreamCheck, FindsAnEmptyResponse) {
  EXPECT_EQ(Check({v1::GenerateResponse()}, absl::CancelledError("")),
            "a response without an event");
}

}  // namespace
}  // namespace txl::bench
