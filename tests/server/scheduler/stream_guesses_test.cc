#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "server/scheduler/guesser.h"

namespace txl {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kMost = 4;

// What follows a digit is the next one.
NgramTable Counting() {
  std::vector<int32_t> text;
  for (int i = 0; i < 200; ++i) text.push_back(i % 10);
  return BuildNgrams(text, 0, {.order = 4, .entries = 100});
}

class StreamGuessesTest : public ::testing::Test {
 protected:
  StreamGuessesTest() { ids_.Append(std::vector<int32_t>{4, 5, 6}); }

  // Steps of streams that all cost the same, with guesses or not: a guess
  // takes `guess`, a stream's row 0.3, the step 0.7 beside them.
  void NoteSteps(double guess) {
    for (int i = 0; i < 400; ++i) {
      StepShape shape = {.streams = true, .turns = 1 + i % 8, .guesses = i % 5};
      guesses_.NoteStep(shape, 0.7 + 0.3 * static_cast<double>(shape.turns) +
                                   guess * static_cast<double>(shape.guesses));
    }
  }
  bool WeighStreams(int count) {
    std::vector<uint64_t> turns(count);
    std::iota(turns.begin(), turns.end(), 0);
    return guesses_.Weigh(turns);
  }
  // Guesses of turn 0 that turn out to be wrong.
  void GuessWrong() {
    guesses_.Guess(0, ids_, kMost);
    guesses_.Saw(0, 77);
  }

  TokenSequence ids_;
  const NgramTable table_ = Counting();
  StreamGuesses guesses_{kMost, &table_};
};

TEST_F(StreamGuessesTest, WithoutRoomNoStreamGuesses) {
  StreamGuesses off(0, &table_);
  EXPECT_FALSE(off.on());
  EXPECT_FALSE(off.waits());
  off.Saw(0, 7);
  off.LookAside(0, ids_, 8);
  off.Ended(0);
}

TEST_F(StreamGuessesTest, AStepWithoutStreamsWaitsForNothing) {
  EXPECT_FALSE(guesses_.waits());
  EXPECT_TRUE(WeighStreams(1));
  EXPECT_TRUE(guesses_.waits());
  EXPECT_FALSE(guesses_.Weigh({}));
  EXPECT_FALSE(guesses_.waits());
}

TEST_F(StreamGuessesTest, EachStreamGuessesBehindItsOwnIds) {
  TokenSequence other;
  other.Append(std::vector<int32_t>{1, 2});
  ASSERT_TRUE(WeighStreams(2));
  const absl::Span<const int32_t> first = guesses_.Guess(0, ids_, kMost);
  const absl::Span<const int32_t> second = guesses_.Guess(1, other, 2);
  EXPECT_THAT(first, ElementsAre(7, 8, 9, 0));
  EXPECT_THAT(second, ElementsAre(3, 4));
}

TEST_F(StreamGuessesTest, CompanyThatMakesGuessesTooDearEndsThem) {
  NoteSteps(/*guess=*/0.3);
  EXPECT_TRUE(WeighStreams(1));
  EXPECT_FALSE(WeighStreams(32));
  EXPECT_FALSE(guesses_.waits());
}

TEST_F(StreamGuessesTest, StepsWithPromptsSayNothingOfWhatGuessesCost) {
  StepShape shape;
  shape.streams = shape.prompts = true;
  shape.turns = shape.guesses = 1;
  // Were it believed, no guess would be worth its row.
  for (int i = 0; i < 400; ++i) guesses_.NoteStep(shape, 1 + i % 2 * 100.0);
  ASSERT_TRUE(WeighStreams(32));
  EXPECT_THAT(guesses_.Guess(0, ids_, kMost), ElementsAre(7, 8, 9, 0));
}

TEST_F(StreamGuessesTest, StreamsThatGuessWrongStopUntilALookAsideIsRight) {
  int steps = 0;
  for (; WeighStreams(1); ++steps) {
    ASSERT_LT(steps, 100);
    GuessWrong();
  }
  EXPECT_GT(steps, 3);
  // One of eight tokens shows what the stream would have guessed.
  for (int64_t generated = 1; generated <= 800; ++generated) {
    guesses_.LookAside(0, ids_, generated);
    for (const int32_t id : {7, 8, 9, 0}) guesses_.Saw(0, id);
  }
  EXPECT_TRUE(WeighStreams(1));
}

TEST_F(StreamGuessesTest, ATurnThatEndedLeavesWhatAllHaveLearned) {
  while (WeighStreams(1)) GuessWrong();
  guesses_.Ended(0);
  guesses_.LookAside(0, ids_, 8);  // of nobody
  EXPECT_FALSE(WeighStreams(1));
}

TEST(CountGuessesTest, AGuessIsARowBehindOneThatSamplesOfItsTurn) {
  const RowKind decode = RowKind::kDecode;
  const std::vector<uint64_t> owners = {1, 1, 1, 2, 2, 3, 3, 4};
  const std::vector<RowKind> kinds = {decode, decode, decode,
                                      decode, decode, RowKind::kPrefill,
                                      decode, decode};
  StepResult result;
  result.rows.resize(owners.size());
  result.rows[4].rejected = true;
  const GuessCounts counts = CountGuesses(owners, kinds, result);
  EXPECT_EQ(counts.guessed, 3);
  EXPECT_EQ(counts.accepted, 2);
  EXPECT_EQ(counts.steps_saved, 2);
  result.rows[2].status = absl::InternalError("not finite");
  EXPECT_EQ(CountGuesses(owners, kinds, result).accepted, 1);
}

}  // namespace
}  // namespace txl
