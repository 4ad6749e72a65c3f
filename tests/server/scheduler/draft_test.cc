#include "server/scheduler/draft.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "server/base/log.h"
#include "tests/fakes/fake_step_runner.h"

namespace txl {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using Ids = std::vector<int32_t>;

// A row sees few ids, so that a memory that begins anew is soon whole.
FakeStepRunnerOptions SmallModel() {
  FakeStepRunnerOptions options;
  options.window = 8;
  options.mem_len = 7;
  return options;
}

class DraftTest : public ::testing::Test {
 protected:
  explicit DraftTest(FakeStepRunnerOptions options = SmallModel())
      : runner_(options), draft_(&runner_) {}
  ~DraftTest() override {
    EXPECT_EQ(runner_.violations(), std::vector<std::string>());
  }

  static DraftAsk AskOf(int32_t slot, const TokenSequence& ids,
                        const Ids& guesses = {}) {
    DraftAsk ask;
    ask.slot = slot;
    ask.ids = &ids;
    ask.guesses = guesses;
    ask.sampling.recent_ids = {guesses.empty() ? ids.back() : guesses.back()};
    return ask;
  }

  // What the draft's model says behind these ids, and what the draft says.
  int32_t Expected(const TokenSequence& ids, const Ids& guesses = {}) const {
    Ids all = ids.Last(ids.size());
    all.insert(all.end(), guesses.begin(), guesses.end());
    return runner_.NextToken(all);
  }
  int32_t Guess(int32_t slot, const TokenSequence& ids,
                const Ids& guesses = {}) {
    const DraftAsk ask = AskOf(slot, ids, guesses);
    const auto guess = draft_.Next({&ask, 1})[0];
    EXPECT_TRUE(guess.has_value());
    return guess.has_value() ? guess->id : -1;
  }
  size_t RowsOfLastStep() const { return runner_.plans().back().rows.size(); }

  FakeStepRunner runner_;
  Draft draft_;
};

TokenSequence SomeIds(int count, int salt = 0) {
  TokenSequence ids;
  for (int i = 0; i < count; ++i) ids.Append({(i * 7 + salt * 13 + 3) % 50});
  return ids;
}

TEST_F(DraftTest, GuessesWhatItsModelSamplesNext) {
  const TokenSequence ids = SomeIds(5);
  const DraftAsk ask = AskOf(2, ids);
  const auto guess = draft_.Next({&ask, 1})[0];
  ASSERT_TRUE(guess.has_value());
  EXPECT_EQ(guess->id, Expected(ids));
  EXPECT_NEAR(guess->probability,
              std::exp(runner_.LogProbs(ids.Last(5))[guess->id]), 1e-6);
  EXPECT_EQ(RowsOfLastStep(), 5u);
  EXPECT_TRUE(draft_.cost().known());
}

TEST_F(DraftTest, EachGuessIsARowBehindTheLast) {
  const TokenSequence ids = SomeIds(5);
  Ids guesses;
  for (int i = 0; i < 6; ++i) {
    const int32_t guess = Guess(0, ids, guesses);
    EXPECT_EQ(guess, Expected(ids, guesses));
    EXPECT_EQ(RowsOfLastStep(), i == 0 ? 5u : 1u);
    guesses.push_back(guess);
  }
}

TEST_F(DraftTest, RefusedGuessesAreFedOver) {
  TokenSequence ids = SomeIds(30);
  Guess(0, ids);
  Guess(0, ids, {11, 12, 13, 14});
  ids.Append({11, 20});
  EXPECT_EQ(Guess(0, ids), Expected(ids));
  EXPECT_EQ(RowsOfLastStep(), 1u);
  EXPECT_EQ(Guess(0, ids), Expected(ids));  // asked again
}

TEST_F(DraftTest, CatchesUpOnTokensThatCameWithoutIt) {
  TokenSequence ids = SomeIds(30);
  Guess(0, ids);
  const Ids more = SomeIds(9, 4).Last(9);
  ids.Append(more);
  EXPECT_EQ(Guess(0, ids), Expected(ids));
  EXPECT_EQ(RowsOfLastStep(), 9u);
}

TEST_F(DraftTest, BeginsAnewWhereTooManyAreMissing) {
  TokenSequence ids = SomeIds(30);
  Guess(0, ids);
  ids.Append(SomeIds(100, 4).Last(100));
  EXPECT_EQ(Guess(0, ids), Expected(ids));
  // A slot's spare rows.
  EXPECT_EQ(RowsOfLastStep(), 16u);
}

TEST_F(DraftTest, BeginsAnewForAnotherSession) {
  for (int salt = 0; salt < 6; ++salt) {
    const TokenSequence ids = SomeIds(12 + 9 * (salt % 3), salt);
    EXPECT_EQ(Guess(1, ids), Expected(ids));
  }
}

TEST_F(DraftTest, StreamsShareAStep) {
  const TokenSequence a = SomeIds(5), b = SomeIds(16, 1), c = SomeIds(9, 2);
  const Ids guessed = {4, 4};
  const std::vector<DraftAsk> asks = {AskOf(3, a), AskOf(0, b),
                                      AskOf(1, c, guessed)};
  const auto guesses = draft_.Next(asks);
  ASSERT_EQ(guesses.size(), 3u);
  EXPECT_EQ(runner_.plans().size(), 1u);
  EXPECT_EQ(guesses[0]->id, Expected(a));
  EXPECT_EQ(guesses[1]->id, Expected(b));
  EXPECT_EQ(guesses[2]->id, Expected(c, guessed));
}

TEST_F(DraftTest, ARowThatFailsGivesNothingOnce) {
  const TokenSequence ids = SomeIds(5);
  const TokenSequence other = SomeIds(7, 3);
  runner_.FailRow(0, 4);
  const std::vector<DraftAsk> asks = {AskOf(0, ids), AskOf(1, other)};
  const auto guesses = draft_.Next(asks);
  EXPECT_FALSE(guesses[0].has_value());
  EXPECT_EQ(guesses[1]->id, Expected(other));
  EXPECT_EQ(Guess(0, ids), Expected(ids));
  EXPECT_TRUE(draft_.works());
}

TEST_F(DraftTest, AStepThatFailsIsTheLast) {
  const LogCapture log;
  const TokenSequence ids = SomeIds(5);
  runner_.FailStep(0, absl::InternalError("no memory"));
  const DraftAsk ask = AskOf(0, ids);
  EXPECT_FALSE(draft_.Next({&ask, 1})[0].has_value());
  EXPECT_FALSE(draft_.works());
  EXPECT_FALSE(draft_.Next({&ask, 1})[0].has_value());
  EXPECT_EQ(runner_.plans().size(), 1u);
  EXPECT_THAT(log.lines(), Contains(HasSubstr("no memory")));
}

class SmallDraftTest : public DraftTest {
 protected:
  static FakeStepRunnerOptions Options() {
    FakeStepRunnerOptions options = SmallModel();
    options.max_rows = 20;
    return options;
  }
  SmallDraftTest() : DraftTest(Options()) {}
};

TEST_F(SmallDraftTest, WhoFindsNoRoomInAStepGetsNothing) {
  const TokenSequence a = SomeIds(12), b = SomeIds(12, 1), c = SomeIds(8, 2);
  const std::vector<DraftAsk> asks = {AskOf(0, a), AskOf(1, b), AskOf(2, c)};
  const auto guesses = draft_.Next(asks);
  EXPECT_EQ(guesses[0]->id, Expected(a));
  EXPECT_FALSE(guesses[1].has_value());
  EXPECT_EQ(guesses[2]->id, Expected(c));
  EXPECT_EQ(Guess(1, b), Expected(b));
}

// Sessions of four slots that grow, are guessed ahead of wrongly, are left
// alone and give way to others.
TEST_F(DraftTest, GuessesBehindTheIdsThatItIsAskedFor) {
  std::mt19937 random(7);
  const auto below = [&](uint32_t n) { return static_cast<int>(random() % n); };
  std::vector<TokenSequence> sessions(4);
  for (int slot = 0; slot < 4; ++slot) sessions[slot] = SomeIds(3 + slot, slot);
  for (int round = 0; round < 2000; ++round) {
    const int slot = below(4);
    TokenSequence& ids = sessions[slot];
    if (below(40) == 0) ids = SomeIds(1 + below(40), round);
    const int more = below(20) == 0 ? 50 : below(5);
    for (int i = 0; i < more; ++i) ids.Append({below(50)});
    Ids guesses;
    for (int i = below(6); i > 0; --i) guesses.push_back(below(50));
    ASSERT_EQ(Guess(slot, ids, guesses), Expected(ids, guesses)) << round;
  }
}

}  // namespace
}  // namespace txl
