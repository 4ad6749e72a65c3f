#include "tests/bench/peak_flags.h"

#include <gtest/gtest.h>

namespace txl {
namespace {

TEST(StatedRatesTest, GoByTheNameThatCudaHas) {
  EXPECT_EQ(StatedRates("NVIDIA H200")->bytes_per_second, 4.8e12);
  EXPECT_EQ(StatedRates("NVIDIA H200")->flops_per_second, 790e12);
  EXPECT_EQ(StatedRates("NVIDIA H100 80GB HBM3")->bytes_per_second, 3.35e12);
  EXPECT_EQ(StatedRates("NVIDIA H100 PCIe")->bytes_per_second, 2.0e12);
  EXPECT_EQ(StatedRates("NVIDIA A100-SXM4-80GB")->bytes_per_second, 2.0e12);
  EXPECT_FALSE(StatedRates("").has_value());
  EXPECT_FALSE(StatedRates("NVIDIA T4").has_value());
}

TEST(DevicePeaksTest, FlagsGoBeforeWhatIsStated) {
  PeakFlags flags = {.device_bandwidth = 4e12};
  const std::optional<MachinePeaks> peaks = DevicePeaks(flags, "NVIDIA H200");
  ASSERT_TRUE(peaks.has_value());
  EXPECT_EQ(peaks->read_bytes_per_second, 4e12);
  EXPECT_EQ(peaks->flops_per_second, 790e12);
  EXPECT_EQ(peaks->ReadRate(1), 4e12);  // whatever the footprint
}

TEST(DevicePeaksTest, AnUnknownDeviceNeedsBothFlags) {
  PeakFlags flags = {.device_bandwidth = 1e12};
  EXPECT_FALSE(DevicePeaks(flags, "a device").has_value());
  flags.device_flops = 2e12;
  const std::optional<MachinePeaks> peaks = DevicePeaks(flags, "a device");
  ASSERT_TRUE(peaks.has_value());
  EXPECT_EQ(peaks->flops_per_second, 2e12);
}

TEST(FindPeaksTest, ACpuThatIsNotMeasuredHasNone) {
  PeakFlags flags = {.measure = false};
  StepRunnerOptions options = {.device = "cpu"};
  const absl::StatusOr<FoundPeaks> found = FindPeaks(flags, options);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_FALSE(found->peaks.has_value());
  EXPECT_TRUE(found->line.is_null());
}

TEST(ReportPeaksTest, WhereNothingIsKnownNothingIsKept) {
  PeakFlags flags = {.measure = false};
  StepRunnerOptions options = {.device = "cpu"};
  nlohmann::ordered_json document = {{"model", "m"}};
  const auto peaks = ReportPeaks(flags, options, document);
  ASSERT_TRUE(peaks.ok()) << peaks.status();
  EXPECT_FALSE(peaks->has_value());
  EXPECT_EQ(document, nlohmann::ordered_json({{"model", "m"}}));
}

TEST(FindPeaksTest, AnUnknownDeviceIsAnError) {
  StepRunnerOptions options = {.device = "tpu"};
  EXPECT_EQ(FindPeaks({}, options).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace txl
