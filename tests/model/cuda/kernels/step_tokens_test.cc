#include "model/cuda/kernels/step_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/model/cuda/device_data.h"

namespace txl::cuda {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr SamplingLimits kLimits = {1, 1, 1};

// Records of slots that sampled these tokens last.
Array<unsigned char> Records(const std::vector<int32_t>& last) {
  SamplingSlots slots;
  slots.limits = kLimits;
  std::vector<unsigned char> records(last.size() * slots.record_bytes(), 0xab);
  slots.records = records.data();
  for (size_t s = 0; s < last.size(); ++s) {
    slots.slot(static_cast<int32_t>(s))->last_sampled = last[s];
  }
  return ToDevice(records);
}

class StepTokensTest : public ::testing::Test {
 protected:
  // Rows of slots 0 (sampled 8), 1 (sampled nothing), 2 (sampled 0), and of
  // none.
  void Resolve() {
    TokenArgs args;
    args.rows = {count(), slots_.data(), positions_.data()};
    args.given = given_.data();
    args.follows_sampled = follows_.data();
    args.slots = {records_.data(), kLimits};
    args.tokens = tokens_.data();
    args.unknown = unknown_.data();
    LaunchResolveTokens(stream_, args);
    stream_.Wait();
  }
  int count() const { return static_cast<int>(slots_.size()); }

  const Array<unsigned char> records_ = Records({8, -1, 0});
  const Array<int32_t> slots_ = ToDevice<int32_t>({0, 1, 1, 1, 2, 2, -1});
  const Array<int64_t> positions_ =
      ToDevice<int64_t>({int64_t{1} << 40, 5, 6, 7, 3, 4, 0});
  const Array<int32_t> given_ = ToDevice<int32_t>({-1, -1, 4, 5, -1, 6, 0});
  const Array<int32_t> follows_ = ToDevice<int32_t>({1, 1, 1, 1, 1, 1, 0});
  const Array<int32_t> tokens_ = Unwritten<int32_t>(7);
  const Array<int32_t> unknown_ = Unwritten<int32_t>(7);
  Stream stream_;
};

TEST_F(StepTokensTest, SampledTokensAreFedAndUnknownOnesAreMarked) {
  Resolve();
  EXPECT_THAT(ToHost(tokens_), ElementsAre(8, 0, 4, 5, 0, 6, 0));
  EXPECT_THAT(ToHost(unknown_), ElementsAre(0, 1, 1, 1, 0, 0, 0));
}

TEST_F(StepTokensTest, TokensThatTheHostKnowsAreFedWhateverWasSampled) {
  CopyTo(given_, {3, 2, 4, 5, 1, 6, 0});
  CopyTo(follows_, std::vector<int32_t>(7, 0));
  Resolve();
  EXPECT_THAT(ToHost(tokens_), ElementsAre(3, 2, 4, 5, 1, 6, 0));
  EXPECT_THAT(ToHost(unknown_), Each(0));
}

TEST_F(StepTokensTest, PickedRowsKnowTheirSlotsUnlessTheyAreUnknown) {
  Resolve();
  const Array<int32_t> picked = ToDevice<int32_t>({5, 2, 0, -1});
  const Array<int32_t> index = Unwritten<int32_t>(4);
  const Array<int32_t> slot = Unwritten<int32_t>(4);
  const Array<int64_t> position = Unwritten<int64_t>(4);
  PickArgs args;
  args.count = 4;
  args.picked = picked.data();
  args.rows = {count(), slots_.data(), positions_.data()};
  args.unknown = unknown_.data();
  args.index = index.data();
  args.slot = slot.data();
  args.position = position.data();
  LaunchPickRows(stream_, args);
  stream_.Wait();
  EXPECT_THAT(ToHost(index), ElementsAre(5, 2, 0, 0));
  EXPECT_THAT(ToHost(slot), ElementsAre(2, -1, 0, -1));
  EXPECT_THAT(ToHost(position), ElementsAre(4, 6, int64_t{1} << 40, 0));
}

// More rows than a block has.
TEST_F(StepTokensTest, EveryRowOfALargeStepIsLookedAt) {
  constexpr int kMany = 300;
  const Array<int32_t> slots = ToDevice(std::vector<int32_t>(kMany, 0));
  const Array<int64_t> positions = ToDevice(std::vector<int64_t>(kMany, 1));
  const Array<int32_t> given = ToDevice(std::vector<int32_t>(kMany, -1));
  const Array<int32_t> follows = ToDevice(std::vector<int32_t>(kMany, 1));
  const Array<int32_t> tokens = Unwritten<int32_t>(kMany);
  const Array<int32_t> unknown = Unwritten<int32_t>(kMany);
  LaunchResolveTokens(stream_, {{kMany, slots.data(), positions.data()},
                                given.data(),
                                follows.data(),
                                {records_.data(), kLimits},
                                tokens.data(),
                                unknown.data()});
  stream_.Wait();
  EXPECT_THAT(ToHost(tokens), Each(8));
  EXPECT_THAT(ToHost(unknown), Each(0));
}

}  // namespace
}  // namespace txl::cuda
