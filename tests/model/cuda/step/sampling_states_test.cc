// States that leave and enter the slots while steps run.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include "tests/model/cuda/device_data.h"
#include "tests/model/cuda/step/sampling_driver.h"

namespace txl {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<const StateImage> Shared(const StateImage& image) {
  return std::make_shared<const StateImage>(image);
}

class SamplingStatesTest : public testing::TestWithParam<NumberFormat> {
 protected:
  CudaStepOptions Options() const {
    CudaStepOptions options;
    options.slots = 5;
    options.spare_rows = 16;
    options.max_rows = 16;
    options.memory = GetParam();
    return options;
  }
  // Feeds tokens [begin, end) in steps of `cut`.
  std::vector<SampledRows> Feed(SamplingStep& step, int32_t slot, int64_t begin,
                                int64_t end, int64_t cut = 8) const {
    std::vector<SampledRows> results;
    for (int64_t t = begin; t < end; t += cut) {
      results.push_back(RunRows(
          step, ScoringRows(slot, model_.tokens, t, std::min(end, t + cut))));
    }
    return results;
  }

  const RandomCase model_ = PromiseCase();  // 21 rows of memory
};

TEST_P(SamplingStatesTest, AreAsTheyWereWhenTheyWereAskedFor) {
  for (const uint64_t order : {1, 2, 3, 4}) {
    cuda::ShuffleThreads(order);
    auto step = MakeSamplingStep(model_, Options());
    for (const int64_t position : {1, 15, 40}) {
      step->Clear(0);
      Feed(*step, 0, 0, position);
      const StateImage expected = step->Export(0, position)->Take();
      auto transfer = step->Export(0, position);
      // Over all of the ring, while the state is on its way.
      const auto first =
          step->Queue(ScoringRows(0, model_.tokens, position, position + 16));
      const auto second = step->Queue(
          ScoringRows(0, model_.tokens, position + 16, position + 28));
      const StateImage image = transfer->Take();
      EXPECT_EQ(image.data, expected.data);
      EXPECT_EQ(image.checksum, expected.checksum);
      EXPECT_EQ(image.rows, 21);  // the start is rows too
      first->Collect();
      second->Collect();
    }
  }
}

TEST_P(SamplingStatesTest, GoOnElsewhereWithTheSameBits) {
  for (const uint64_t order : {1, 2, 3, 4}) {
    cuda::ShuffleThreads(order);
    auto step = MakeSamplingStep(model_, Options());
    for (const int64_t position : {1, 15, 40}) {
      step->Clear(0);
      Feed(*step, 0, 0, position);
      const StateImage image = step->Export(0, position)->Take();
      // Other slots' steps run between the import and its first use.
      const auto brought = step->Import(3, Shared(image));
      step->Import(4, Shared(image));  // brought by who uses the slot
      Feed(*step, 1, 0, 9);
      EXPECT_TRUE(brought->Bring().ok());
      const auto expected = Feed(*step, 0, position, position + 12);
      step->Copy(4, 2);
      for (const int32_t slot : {3, 2}) {
        EXPECT_TRUE(SameSampledRows(Feed(*step, slot, position, position + 12),
                                    expected))
            << "slot " << slot << " at " << position;
      }
    }
  }
}

TEST_P(SamplingStatesTest, EqualThoseOfThePlainStep) {
  auto step = MakeSamplingStep(model_, Options());
  auto plain = MakeCudaStep(model_, Options());
  Feed(*step, 0, 0, 30, 10);
  FeedRows(*plain, 0, model_.tokens, 0, 30, 10);
  const StateImage image = step->Export(0, 30)->Take();
  EXPECT_EQ(image.data, plain->Export(0, 30).data);
  EXPECT_TRUE(plain->Import(2, image).ok());
  EXPECT_EQ(plain->Export(2, 30).data, image.data);
}

TEST_P(SamplingStatesTest, MoreThanThereIsRoomForWaitForTheOldest) {
  constexpr int kMany = 3 * kStatesOnTheirWay;
  for (const uint64_t order : {1, 2, 3}) {
    cuda::ShuffleThreads(order);
    auto step = MakeSamplingStep(model_, Options());
    std::vector<std::unique_ptr<StateTransfer>> transfers;
    std::vector<LargeVector<uint8_t>> expected;
    for (int i = 0; i < kMany; ++i) {
      Feed(*step, 0, i, i + 1);
      expected.push_back(step->Export(0, i + 1)->Take().data);
      transfers.push_back(step->Export(0, i + 1));
      if (i % 4 == 3) transfers.back().reset();  // nobody wants it
    }
    for (int i = kMany; i-- > 0;) {  // the newest first
      if (transfers[i] != nullptr) {
        EXPECT_EQ(transfers[i]->Take().data, expected[i]) << i;
      }
    }
  }
}

// Into every slot, more often than there is room, before any of them is used.
TEST_P(SamplingStatesTest, ImportsWaitForTheirSlotsToBeUsed) {
  for (const uint64_t order : {1, 2, 3}) {
    cuda::ShuffleThreads(order);
    auto step = MakeSamplingStep(model_, Options());
    std::vector<StateImage> images;
    for (int i = 0; i < 10; ++i) {
      Feed(*step, 0, i, i + 1);
      images.push_back(step->Export(0, i + 1)->Take());
    }
    for (int32_t i = 0; i < 10; ++i) {
      step->Import(i % 5, Shared(images[i]));
    }
    for (int32_t slot = 0; slot < 5; ++slot) {
      const StateImage& last = images[5 + slot];
      EXPECT_EQ(step->Export(slot, last.position)->Take().data, last.data);
    }
    // What is written after an import is not undone by it.
    const auto late = step->Import(1, Shared(images[9]));
    step->Clear(1);
    step->Clear(2);
    EXPECT_TRUE(late->Bring().ok());
    EXPECT_TRUE(SameSampledRows(Feed(*step, 1, 0, 8), Feed(*step, 2, 0, 8)));
  }
}

TEST_P(SamplingStatesTest, MayBeTakenByOtherThreadsAndAfterTheStep) {
  auto step = MakeSamplingStep(model_, Options());
  Feed(*step, 0, 0, 10);
  const LargeVector<uint8_t> expected = step->Export(0, 10)->Take().data;
  auto transfer = step->Export(0, 10);
  LargeVector<uint8_t> found;
  std::thread taker([&] { found = transfer->Take().data; });
  const auto more = Feed(*step, 1, 0, 10);
  taker.join();
  EXPECT_EQ(found, expected);
  transfer = step->Export(0, 10);
  step.reset();
  EXPECT_EQ(transfer->Take().data, expected);
}

TEST_P(SamplingStatesTest, OfOthersAreRefusedAndTheSlotIsAsItWas) {
  auto step = MakeSamplingStep(model_, Options());
  Feed(*step, 0, 0, 10);
  const StateImage own = step->Export(0, 10)->Take();
  StateImage other = own;
  other.identity.kernel = "native-cpu-absorbed";
  other.Seal();
  const auto bring = [&] { return step->Import(0, Shared(other))->Bring(); };
  EXPECT_THAT(bring().message(), HasSubstr("kernel"));
  other = own;
  other.position = -1;
  other.Seal();
  EXPECT_THAT(bring().message(), HasSubstr("position -1"));
  other = own;
  other.data[3] ^= 1;
  EXPECT_EQ(bring().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(step->Export(0, 10)->Take().data, own.data);
}

INSTANTIATE_TEST_SUITE_P(
    Formats, SamplingStatesTest,
    testing::Values(NumberFormat::kF32, NumberFormat::kBF16),
    [](const auto& info) {
      return std::string(info.param == NumberFormat::kF32 ? "f32" : "bf16");
    });

}  // namespace
}  // namespace txl
