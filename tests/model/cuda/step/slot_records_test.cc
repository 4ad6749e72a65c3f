#include "model/cuda/step/slot_records.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/model/cuda/device_data.h"

namespace txl::cuda {
namespace {

constexpr SamplingLimits kLimits = {4, 3, 6};
constexpr int64_t kRecords = 50;
constexpr int kStaged = 2;

class SlotRecordsTest : public ::testing::Test {
 protected:
  // All records, on the host.
  SamplingSlots Fetch() {
    const SamplingSlots& there = records_.slots();
    host_.resize(kRecords * there.record_bytes() / sizeof(double));
    stream_.Copy(host_.data(), there.records, kRecords * there.record_bytes());
    stream_.Wait();
    return {reinterpret_cast<unsigned char*>(host_.data()), kLimits};
  }

  Stream stream_;
  SlotRecords records_{kRecords, kLimits, kStaged, stream_};
  std::vector<double> host_;
};

TEST_F(SlotRecordsTest, BeginWithDefaultsAndNoToken) {
  const SamplingSlots slots = Fetch();
  for (int32_t s = 0; s < kRecords; ++s) {
    EXPECT_EQ(slots.slot(s)->path, SamplingPath::kDrawByCluster);
    EXPECT_EQ(slots.slot(s)->temperature, 1);
    EXPECT_EQ(slots.slot(s)->last_sampled, -1);
    EXPECT_EQ(slots.slot(s)->recent_count, 0);
    EXPECT_EQ(slots.slot(s)->bias_count, 0);
  }
}

TEST_F(SlotRecordsTest, AreWrittenOneByOne) {
  const std::vector<int32_t> recent = {7, 8, 9};
  const std::vector<int32_t> banned = {1, 2};
  SampleContext context;
  context.recent_ids = recent;
  context.banned_ids = banned;
  context.position = 40;
  SamplingParams params;
  params.seed = 77;
  params.logit_bias = {{3, 0.5}};
  records_.Configure(2, params, context);
  const SamplingSlots slots = Fetch();
  EXPECT_EQ(slots.slot(2)->seed, 77u);
  EXPECT_EQ(slots.slot(2)->min_position, 40);
  EXPECT_EQ(slots.slot(2)->banned_count, 2);
  EXPECT_EQ(slots.banned(2)[1], 2);
  EXPECT_EQ(slots.bias_ids(2)[0], 3);
  EXPECT_EQ(slots.biases(2)[0], 0.5);
  EXPECT_EQ(slots.slot(2)->recent_count, 3);
  EXPECT_EQ(slots.recent(2)[2], 9);
  EXPECT_EQ(slots.slot(1)->seed, 0u);
  EXPECT_EQ(slots.slot(3)->seed, 0u);
}

// However late the device copies them.
TEST_F(SlotRecordsTest, MoreThanAreStagedAllArrive) {
  for (uint64_t order = 0; order < 5; ++order) {
    ShuffleThreads(order);
    SamplingParams params;
    for (int32_t slot = 0; slot < kRecords; ++slot) {
      params.seed = 1000 * order + slot;
      records_.Configure(slot, params, {});
    }
    const SamplingSlots slots = Fetch();
    for (int32_t slot = 0; slot < kRecords; ++slot) {
      EXPECT_EQ(slots.slot(slot)->seed, 1000 * order + slot);
    }
  }
}

TEST_F(SlotRecordsTest, ATokenIsForgottenAndNothingElse) {
  SamplingParams params;
  params.seed = 5;
  records_.Configure(1, params, {});
  const int32_t token = 9;
  stream_.Copy(&records_.slots().slot(1)->last_sampled, &token, sizeof(token));
  stream_.Wait();
  EXPECT_EQ(Fetch().slot(1)->last_sampled, 9);
  records_.ForgetLast(1);
  EXPECT_EQ(Fetch().slot(1)->last_sampled, -1);
  EXPECT_EQ(Fetch().slot(1)->seed, 5u);
  EXPECT_EQ(Fetch().slot(1)->bias_count, 0);
}

}  // namespace
}  // namespace txl::cuda
