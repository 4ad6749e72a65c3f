#include "tests/bench/front/paced_runner.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <vector>

#include "tests/fakes/fake_clock.h"

namespace txl {
namespace {

constexpr int64_t kVocabulary = 50;

class PacedRunnerTest : public ::testing::Test {
 protected:
  PacedRunnerTest() : runner_(Options(), &clock_, Sleep()) {}

  // A row a millisecond.
  static PacedRunnerOptions Options() {
    return PacedRunnerOptions{.rows_per_second = 1000,
                              .max_rows = 16,
                              .vocab_size = kVocabulary,
                              .mem_len = 8};
  }

  std::function<void(absl::Duration)> Sleep() {
    return [this](absl::Duration time) {
      naps_.push_back(time);
      clock_.Advance(time);
    };
  }

  static StepPlan Decode(int rows, int64_t position = 0) {
    StepPlan plan;
    for (int slot = 0; slot < rows; ++slot) {
      StepRow row = {
          .slot = slot, .position = position, .kind = RowKind::kDecode};
      plan.rows.push_back(row);
    }
    return plan;
  }

  FakeClock clock_;
  std::vector<absl::Duration> naps_;
  PacedRunner runner_;
};

TEST_F(PacedRunnerTest, HasASlotForEachRow) {
  EXPECT_EQ(runner_.info().slots, 16);
  EXPECT_EQ(runner_.info().max_rows, 16);
  EXPECT_EQ(runner_.info().depth, 2);
  EXPECT_EQ(runner_.info().vocab_size, kVocabulary);
  EXPECT_FALSE(runner_.info().derives);
}

TEST_F(PacedRunnerTest, CollectWaitsUntilTheStepIsOver) {
  const StepId first = runner_.Submit(Decode(10));
  const StepId second = runner_.Submit(Decode(5));
  clock_.Advance(absl::Milliseconds(4));
  const auto result = runner_.Collect(first);
  ASSERT_TRUE(result.ok());
  EXPECT_DOUBLE_EQ(result->device_seconds, 0.010);
  clock_.Advance(absl::Milliseconds(1));
  ASSERT_TRUE(runner_.Collect(second).ok());
  EXPECT_EQ(naps_, std::vector({absl::Milliseconds(6), absl::Milliseconds(4)}));
  EXPECT_EQ(runner_.totals().steps, 2);
  EXPECT_EQ(runner_.totals().rows, 15);
  EXPECT_EQ(runner_.totals().late_steps, 0);
}

TEST_F(PacedRunnerTest, AStepThatIsOverIsThereAtOnce) {
  const StepId step = runner_.Submit(Decode(3));
  clock_.Advance(absl::Milliseconds(20));
  ASSERT_TRUE(runner_.Collect(step).ok());
  EXPECT_TRUE(naps_.empty());
  runner_.Submit(Decode(1));
  EXPECT_EQ(runner_.totals().late_steps, 1);
  EXPECT_EQ(runner_.totals().idle, absl::Milliseconds(17));
}

TEST_F(PacedRunnerTest, RowsThatDecodeHaveTheTokenOfTheirPlace) {
  StepPlan plan = Decode(3, 7);
  plan.rows[1].kind = RowKind::kPrefill;
  plan.rows[2].kind = RowKind::kScore;
  plan.rows[2].score_target = 33;
  const auto result = runner_.Collect(runner_.Submit(plan));
  ASSERT_EQ(result->rows.size(), 3);
  EXPECT_EQ(result->rows[0].token_id, PacedToken(0, 7, kVocabulary));
  EXPECT_EQ(result->rows[1].token_id, -1);
  EXPECT_EQ(result->rows[2].token_id, 33);
  for (const RowResult& row : result->rows) EXPECT_TRUE(row.status.ok());
}

TEST_F(PacedRunnerTest, StepsAreCollectedInOrder) {
  runner_.Submit(Decode(1));
  const StepId second = runner_.Submit(Decode(1));
  EXPECT_EQ(runner_.Collect(second).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(PacedRunnerTest, AStateThatWentOutComesIn) {
  absl::StatusOr<StateImage> exported = runner_.Export(3, 20).get();
  ASSERT_TRUE(exported.ok());
  const auto image = std::make_shared<const StateImage>(*std::move(exported));
  EXPECT_EQ(image->position, 20);
  EXPECT_EQ(image->rows, 8);
  EXPECT_TRUE(runner_.Import(5, image).get().ok());
  const auto damaged = std::make_shared<StateImage>(*image);
  damaged->data[0] ^= 1;
  EXPECT_EQ(runner_.Import(5, damaged).get().code(),
            absl::StatusCode::kDataLoss);
}

TEST(PacedTokenTest, IsAnIdThatVariesWithSlotAndPosition) {
  std::vector<int> times(kVocabulary);
  constexpr int kSlots = 20;
  constexpr int kPositions = 500;
  for (int slot = 0; slot < kSlots; ++slot) {
    std::set<int32_t> ids;
    for (int position = 0; position < kPositions; ++position) {
      const int32_t id = PacedToken(slot, position, kVocabulary);
      ASSERT_GE(id, 0);
      ASSERT_LT(id, kVocabulary);
      ++times[static_cast<size_t>(id)];
      ids.insert(id);
    }
    EXPECT_EQ(ids.size(), kVocabulary) << slot;
  }
  // 200 expected, standard deviation 14.
  for (const int count : times) EXPECT_NEAR(count, 200, 70);
}

}  // namespace
}  // namespace txl
