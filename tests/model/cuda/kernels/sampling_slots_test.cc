#include "model/cuda/kernels/sampling_slots.h"

#include <gtest/gtest.h>

#include <vector>

namespace txl::cuda {
namespace {

constexpr SamplingLimits kLimits = {3, 2, 5, 4};

class Records {
 public:
  explicit Records(int count) {
    slots_.limits = kLimits;
    // doubles: aligned
    memory_.resize(count * slots_.record_bytes() / sizeof(double));
    slots_.records = reinterpret_cast<unsigned char*>(memory_.data());
  }
  const SamplingSlots& slots() const { return slots_; }

 private:
  std::vector<double> memory_;
  SamplingSlots slots_;
};

SamplingPath PathOf(const SamplingParams& params) {
  Records records(1);
  FillSamplingSlot(params, {}, records.slots(), 0);
  return records.slots().slot(0)->path;
}

TEST(SamplingSlotsTest, ARecordHoldsParametersAndLists) {
  Records records(2);
  SamplingParams params;
  params.temperature = 0.5;
  params.top_k = 4;
  params.seed = 77;
  params.frequency_penalty = 0.25;
  params.penalty_window = 4;
  params.logit_bias = {{9, 1.5}, {2, -2.0}};
  params.allowed_token_ids = {7, 9};
  params.follow_kinds = true;
  const std::vector<int32_t> recent = {1, 2, 3, 4, 5, 6};
  const std::vector<int32_t> banned = {8};
  FillSamplingSlot(params, {recent, banned, 12}, records.slots(), 1);
  const SamplingSlots& slots = records.slots();
  const SamplingSlot& slot = *slots.slot(1);
  EXPECT_EQ(slot.temperature, 0.5);
  EXPECT_EQ(slot.top_k, 4);
  EXPECT_EQ(slot.seed, 77u);
  EXPECT_EQ(slot.frequency_penalty, 0.25);
  EXPECT_EQ(slot.window, 4);
  EXPECT_EQ(slot.follows_kinds, 1);
  EXPECT_EQ(slot.min_position, 12);
  EXPECT_EQ(slot.last_sampled, -1);
  ASSERT_EQ(slot.bias_count, 2);
  EXPECT_EQ(slots.bias_ids(1)[0], 2);
  EXPECT_EQ(slots.biases(1)[0], -2.0);
  EXPECT_EQ(slots.bias_ids(1)[1], 9);
  EXPECT_EQ(slots.biases(1)[1], 1.5);
  ASSERT_EQ(slot.banned_count, 1);
  EXPECT_EQ(slots.banned(1)[0], 8);
  ASSERT_EQ(slot.allowed_count, 2);
  EXPECT_EQ(slots.allowed(1)[0], 7);
  EXPECT_EQ(slots.allowed(1)[1], 9);
  ASSERT_EQ(slot.recent_count, 5);  // the last ones that fit
  for (int i = 0; i < 5; ++i) EXPECT_EQ(slots.recent(1)[i], i + 2);
  EXPECT_EQ(slots.slot(0)->seed, 0u);  // untouched
  FillSamplingSlot({}, {}, slots, 1);
  EXPECT_EQ(slots.slot(1)->follows_kinds, 0);
}

TEST(SamplingSlotsTest, RecordsAreMultiplesOf16BytesThatHoldTheirLists) {
  for (const SamplingLimits limits :
       {SamplingLimits{}, SamplingLimits{1, 0, 0, 0}, kLimits}) {
    SamplingSlots slots;
    slots.limits = limits;
    EXPECT_EQ(slots.record_bytes() % 16, 0);
    std::vector<unsigned char> memory(2 * slots.record_bytes());
    slots.records = memory.data();
    EXPECT_EQ(slots.allowed(0), slots.recent(0) + limits.recent);
    EXPECT_LE(
        reinterpret_cast<unsigned char*>(slots.allowed(0) + limits.allowed),
        reinterpret_cast<unsigned char*>(slots.slot(1)));
  }
}

TEST(SamplingSlotsTest, PenaltiesThatAreOffHaveNoWindow) {
  Records records(1);
  FillSamplingSlot({}, {}, records.slots(), 0);
  EXPECT_EQ(records.slots().slot(0)->window, 0);
}

TEST(SamplingSlotsTest, ThePathFollowsFromTheParameters) {
  SamplingParams params;
  EXPECT_EQ(PathOf(params), SamplingPath::kDrawByCluster);
  params.temperature = 0;
  EXPECT_EQ(PathOf(params), SamplingPath::kBest);
  params.top_p = 0.5;
  EXPECT_EQ(PathOf(params), SamplingPath::kBest);
  params.repetition_penalty = 1.1;
  EXPECT_EQ(PathOf(params), SamplingPath::kBestAdjusted);
  params.temperature = 1;
  EXPECT_EQ(PathOf(params), SamplingPath::kDrawJointly);
  params = {};
  params.top_k = 5;
  params.top_p = 0.5;
  EXPECT_EQ(PathOf(params), SamplingPath::kDrawBounded);
  params.logit_bias = {{1, 1}};
  EXPECT_EQ(PathOf(params), SamplingPath::kDrawJointly);
  params = {};
  params.min_p = 0.5;
  EXPECT_EQ(PathOf(params), SamplingPath::kDrawBounded);
  params.typical_p = 0.5;
  EXPECT_EQ(PathOf(params), SamplingPath::kDrawJointly);
  params = {};
  params.allowed_token_ids = {3};
  EXPECT_EQ(PathOf(params), SamplingPath::kDrawJointly);
  params.top_k = 1;
  EXPECT_EQ(PathOf(params), SamplingPath::kDrawJointly);
  params.temperature = 0;
  EXPECT_EQ(PathOf(params), SamplingPath::kBestAdjusted);
  params = {};
  params.follow_kinds = true;
  EXPECT_EQ(PathOf(params), SamplingPath::kDrawJointly);
  params.top_k = 1;
  EXPECT_EQ(PathOf(params), SamplingPath::kDrawJointly);
  params.temperature = 0;
  EXPECT_EQ(PathOf(params), SamplingPath::kBestAdjusted);
}

TEST(SamplingSlotsTest, TheDeviceSamplesWhatFitsARecord) {
  const VocabularyBins bins{{10, 20}};
  SamplingParams params;
  EXPECT_TRUE(SampledOnDevice(params, 2, bins, kLimits));
  EXPECT_FALSE(SampledOnDevice(params, 3, bins, kLimits));
  EXPECT_EQ(params.penalty_window, 64);  // beyond the ring, but unused
  params.presence_penalty = 1;
  EXPECT_FALSE(SampledOnDevice(params, 0, bins, kLimits));
  params.penalty_window = 5;
  EXPECT_TRUE(SampledOnDevice(params, 0, bins, kLimits));
  params.logit_bias = {{1, 1}, {2, 1}, {3, 1}};
  EXPECT_TRUE(SampledOnDevice(params, 0, bins, kLimits));
  params.allowed_token_ids = {1, 2, 3, 4};
  EXPECT_TRUE(SampledOnDevice(params, 0, bins, kLimits));
  params.allowed_token_ids.push_back(5);
  EXPECT_FALSE(SampledOnDevice(params, 0, bins, kLimits));
  params.allowed_token_ids.clear();
  params.logit_bias[4] = 1;
  EXPECT_FALSE(SampledOnDevice(params, 0, bins, kLimits));
  params = {};
  params.follow_kinds = true;
  EXPECT_TRUE(SampledOnDevice(params, 0, bins, kLimits));
  // The ring holds the last id.
  EXPECT_FALSE(SampledOnDevice(params, 0, bins, {3, 2, 0, 4}));
}

TEST(SamplingSlotsTest, TheDefaultLimitsTakeEveryRequest) {
  SamplingParams params;
  params.penalty_window = 4096;
  params.presence_penalty = 1;
  for (int id = 0; id < 1024; ++id) params.logit_bias[id] = 1;
  params.allowed_token_ids.resize(1024);
  EXPECT_TRUE(SampledOnDevice(params, 64, {{2000}}, {}));
}

TEST(SamplingSlotsTest, VocabulariesOfTooManyClustersAreLeftToTheHost) {
  VocabularyBins bins;
  for (int64_t end = 1; end <= kMaxSampledClusters + 1; ++end) {
    bins.ends.push_back(end);
  }
  EXPECT_TRUE(SampledOnDevice({}, 0, bins, {}));
  bins.ends.push_back(kMaxSampledClusters + 2);
  EXPECT_FALSE(SampledOnDevice({}, 0, bins, {}));
}

}  // namespace
}  // namespace txl::cuda
