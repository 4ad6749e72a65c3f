// What is measured and judged, on traces that are made up.

#include "model/step/self_test.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace txl {
namespace {

using ::testing::DoubleNear;
using ::testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Two layers of as many rows of two numbers as there are.
std::shared_ptr<StateImage> State(const std::vector<float>& rows) {
  auto image = std::make_shared<StateImage>();
  image->identity.row_dtype = "f32";
  image->identity.n_layer = 2;
  image->identity.d_model = 2;
  image->rows = static_cast<int64_t>(rows.size()) / 4;
  image->position = 2;
  image->data.resize(rows.size() * sizeof(float));
  std::memcpy(image->data.data(), rows.data(), image->data.size());
  return image;
}

// A session of two rows over two words, and what the reference says of it: the
// same.
class SelfTestTest : public testing::Test {
 protected:
  SelfTestTest() {
    session_.prompt = {0, 1};
    session_.targets = {1};
    session_.drawn = 1;
    session_.params.temperature = 0;
    trace_.tokens = {0, 1};
    RowResult row;
    row.token_id = 1;
    row.logprob = -1;
    row.top_logprobs = {{0, -0.5f}, {1, -1}};
    trace_.rows = {row, row};
    trace_.rows[1].token_id = 0;
    trace_.rows[1].logprob = -0.5f;
    trace_.end = State({1, 1, -1, 1, 2, 2, 2, -2});
    for (const RowResult& found : trace_.rows) {
      ReferenceRow expected;
      expected.logprob = found.logprob;
      expected.alternatives = {-0.5f, -1};
      expected.best = {-0.5f, -1};
      expected.spread = 0.5;
      expected_.rows.push_back(expected);
    }
    Expect(*trace_.end);
  }
  void Expect(const StateImage& end) {
    expected_.end = end;
    expected_.state_rows = end.rows;
  }
  std::string Checked() const {
    const VocabularyBins bins{{2}};
    return std::string(
        CheckSelfTest(bins, {&session_, 1}, {&trace_, 1}).message());
  }
  absl::StatusOr<SelfTestDeviation> Measured() const {
    return MeasureSelfTest({&trace_, 1}, {&expected_, 1});
  }

  SelfTestSession session_;
  SelfTestTrace trace_;
  ReferenceTrace expected_;
};

TEST_F(SelfTestTest, WhatIsTheSameDoesNotDeviate) {
  EXPECT_EQ(Checked(), "");
  const auto deviation = Measured();
  ASSERT_TRUE(deviation.ok()) << deviation.status();
  EXPECT_EQ(deviation->logprobs, 0);
  EXPECT_EQ(deviation->logprob.difference, 0);
  EXPECT_EQ(deviation->layer.difference, 0);
  EXPECT_EQ(deviation->row.difference, 0);
  EXPECT_TRUE(JudgeSelfTest(*deviation, SelfTestBounds()).ok());
}

// 0.1 nats at a spread of 0.5, in one of 10 numbers.
TEST_F(SelfTestTest, LogprobsAreMeasuredBySpread) {
  trace_.rows[0].logprob = -1.1f;
  const auto deviation = Measured();
  EXPECT_THAT(deviation->logprob.difference, DoubleNear(0.2, 1e-6));
  EXPECT_THAT(deviation->logprobs, DoubleNear(0.2 / std::sqrt(10), 1e-6));
  EXPECT_THAT(deviation->logprob.where,
              HasSubstr("session 0, position 0: log P of token 1"));
}

TEST_F(SelfTestTest, AMissingAlternativeShowsInTheOrder) {
  expected_.rows[1].best = {-0.2f, -0.5f};
  EXPECT_THAT(Measured()->logprob.difference, DoubleNear(1.0, 1e-6));
}

// The second row of the second layer, whose numbers are 2 in the mean square.
TEST_F(SelfTestTest, RowsAreMeasuredByTheirLayer) {
  trace_.end = State({1, 1, -1, 1, 2, 2, 2, -1.8f});
  const auto deviation = Measured();
  const double one = 0.1 / std::sqrt(1 + 8.0 / 3);
  EXPECT_THAT(deviation->row.difference, DoubleNear(one / std::sqrt(2), 1e-6));
  EXPECT_THAT(deviation->layer.difference, DoubleNear(one / 2, 1e-6));
  EXPECT_THAT(deviation->row.where, HasSubstr("layer 1, row 1"));
}

// However many rows of nothing a session began on.
TEST_F(SelfTestTest, RowsThatMovedAreNoMeasure) {
  trace_.end = State({1, 1, 2, -1.8f});
  Expect(*State({1, 1, 2, -2}));
  trace_.position = 1;
  const double alone = Measured()->row.difference;
  EXPECT_GT(alone, 0);
  trace_.start = State({0, 0, 0, 0, 0, 0, 0, 0});
  trace_.end = State({0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 2, -1.8f});
  Expect(*State({0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 2, -2}));
  EXPECT_EQ(Measured()->row.difference, alone);
}

TEST_F(SelfTestTest, RowsThatMovedAreTheSameBits) {
  trace_.start = State({0, 3, 1, 1, 0, 3, 2, 2});
  trace_.position = 1;  // the second row is new
  trace_.end = State({1, 1, -1.1f, 1, 2, 2, 2, -2});
  EXPECT_TRUE(Measured().ok());
  trace_.end = State({std::nextafter(1.0f, 2.0f), 1, -1, 1, 2, 2, 2, -2});
  EXPECT_THAT(std::string(Measured().status().message()),
              HasSubstr("session 0, layer 0: row 0 of its state was moved"));
}

// A memory that begins with rows: they are alike, and the first is measured.
TEST_F(SelfTestTest, AClearedStateHasTheRowsThatTheModelBeginsWith) {
  trace_.position = 1;
  EXPECT_EQ(Measured()->row.difference, 0);
  Expect(*State({1.5f, 1, -1, 1, 2, 2, 2, -2}));
  EXPECT_THAT(Measured()->row.where, HasSubstr("layer 0, row 0"));
  trace_.end = State({1, 1, 1, 1, -1, 1, 2, 2, 2, 2, 2, -2});
  Expect(*trace_.end);
  EXPECT_EQ(Measured()->row.difference, 0);
  trace_.end = State({1, 1, 1, 3, -1, 1, 2, 2, 2, 2, 2, -2});
  EXPECT_THAT(std::string(Measured().status().message()),
              HasSubstr("session 0, layer 0: row 1 of its cleared state"));
}

// The state has three rows. The session began with two of them.
TEST_F(SelfTestTest, TheReferenceHasTheNewestRowsAlone) {
  trace_.position = 1;
  trace_.end = State({1, 1, 1, 1, -1, 1, 2, 2, 2, 2, 2, -2});
  Expect(*State({1, 1, -1, 1, 2, 2, 2, -2}));
  EXPECT_THAT(std::string(Measured().status().message()),
              HasSubstr("3 rows before position 2, the reference 2"));
  expected_.state_rows = 3;
  EXPECT_EQ(Measured()->row.difference, 0);
  expected_.end = *State({1.5f, 1, -1, 1, 2, 2, 2, -2});
  EXPECT_THAT(Measured()->row.where, HasSubstr("layer 0, row 1"));
  expected_.end = *State({1, 1, -1, 1, 2, 2, 2.5f, -2});
  EXPECT_THAT(Measured()->row.where, HasSubstr("layer 1, row 2"));
}

TEST_F(SelfTestTest, StatesHaveTheSameRows) {
  const auto later = State({1, 1, -1, 1, 2, 2, 2, -2});
  later->position = 3;
  trace_.end = later;
  EXPECT_THAT(std::string(Measured().status().message()),
              HasSubstr("2 rows before position 3"));
}

TEST_F(SelfTestTest, WhatIsNotFiniteIsNoNumber) {
  trace_.end = State({1, 1, kNan, 1, 2, 2, 2, -2});
  EXPECT_THAT(std::string(Measured().status().message()),
              HasSubstr("row 1 is not finite"));
  trace_.rows[1].logprob = kNan;
  EXPECT_THAT(Checked(), HasSubstr("session 0, position 1: log P is nan"));
  trace_.rows[1].status = NotFinite(1);
  EXPECT_THAT(Checked(), HasSubstr("not finite"));
}

TEST_F(SelfTestTest, IdsAreInTheVocabulary) {
  trace_.rows[0].token_id = 2;
  EXPECT_THAT(Checked(), HasSubstr("there is no token 2"));
}

TEST_F(SelfTestTest, AlternativesAreAllThere) {
  trace_.rows[0].top_logprobs.pop_back();
  EXPECT_THAT(Checked(), HasSubstr("1 alternatives, not 2"));
}

TEST_F(SelfTestTest, ATokenHasOneLogprob) {
  trace_.rows[1].logprob = -0.6f;
  EXPECT_THAT(Checked(), HasSubstr("as an alternative -0.5"));
}

TEST_F(SelfTestTest, AGreedyTokenIsTheBest) {
  trace_.rows[1].token_id = 1;
  trace_.rows[1].logprob = -1;
  EXPECT_THAT(Checked(), HasSubstr("token 1 was drawn"));
}

TEST(JudgeSelfTestTest, EachBoundIsJudged) {
  SelfTestBounds bounds;
  bounds.logprobs = bounds.logprob = bounds.layer = bounds.row = bounds.draw =
      0.5;
  SelfTestDeviation deviation;
  SelfTestWorst nearly;
  nearly.difference = 0.5;
  deviation.logprobs = 0.5;
  deviation.logprob = deviation.layer = deviation.row = deviation.draw = nearly;
  EXPECT_TRUE(JudgeSelfTest(deviation, bounds).ok());
  for (SelfTestWorst SelfTestDeviation::*part :
       {&SelfTestDeviation::logprob, &SelfTestDeviation::layer,
        &SelfTestDeviation::row, &SelfTestDeviation::draw}) {
    SelfTestDeviation worse = deviation;
    (worse.*part).difference = 0.6;
    (worse.*part).where = "here";
    const absl::Status status = JudgeSelfTest(worse, bounds);
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    EXPECT_THAT(std::string(status.message()), HasSubstr("here"));
  }
  deviation.logprobs = 0.6;
  EXPECT_FALSE(JudgeSelfTest(deviation, bounds).ok());
}

// The coarsest one counts.
TEST(SelfTestBoundsTest, GrowWithFormatsAndLayers) {
  using enum NumberFormat;
  const SelfTestBounds f32 = SelfTestBoundsOf({}, 4);
  const SelfTestBounds f16 = SelfTestBoundsOf({kF32, kF16, kF32}, 4);
  const SelfTestBounds int8 = SelfTestBoundsOf({kInt8, kF16, kBF16}, 4);
  EXPECT_LT(f32.layer, f16.layer);
  EXPECT_LT(f16.layer, int8.layer);
  EXPECT_EQ(int8.layer, SelfTestBoundsOf({kInt8, kF32, kF32}, 4).layer);
  // The reference has the same rounded weights.
  EXPECT_EQ(int8.layer, SelfTestBoundsOf({kInt4, kF32, kF32}, 4).layer);
  const SelfTestBounds deep = SelfTestBoundsOf({}, 18);
  EXPECT_EQ(deep.layer, f32.layer);  // growth is in what is measured
  EXPECT_THAT(deep.logprobs / f32.logprobs,
              DoubleNear(std::sqrt((1 + 48.0) / (1 + 32.0 / 3)), 1e-9));
}

}  // namespace
}  // namespace txl
