#include "model/cuda/step/step_results.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "tests/model/cuda/device_data.h"

namespace txl::cuda {
namespace {

constexpr int64_t kResultRows = 5;
constexpr int64_t kEnds = 3;
constexpr int64_t kTop = kResultRows * kMaxReported;

// Every number of the device is its index.
void FillDevice(const StepResults& results) {
  std::vector<int32_t> numbers(results.device().size());
  std::iota(numbers.begin(), numbers.end(), 0);
  Stream stream;
  stream.Copy(results.device().unknown(), numbers.data(),
              numbers.size() * sizeof(int32_t));
  stream.Wait();
}

// The bits of `count` numbers.
template <typename Number>
std::vector<int32_t> BitsOf(const Number* from, int64_t count) {
  std::vector<int32_t> bits(count);
  std::memcpy(bits.data(), from, count * sizeof(int32_t));
  return bits;
}
std::vector<int32_t> From(int32_t first, int64_t count) {
  std::vector<int32_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

TEST(StepResultsTest, ArraysLieApartAndArriveInTheirBuffer) {
  StepResults results(kResultRows, kEnds, 2);
  FillDevice(results);
  for (const int buffer : {0, 1}) {
    Stream stream;
    results.QueueCopy(buffer, true, stream);
    stream.Wait();
    const ResultArrays host = results.host(buffer);
    EXPECT_EQ(host.size(), 4 * kResultRows + kEnds + 2 * kTop);
    EXPECT_EQ(BitsOf(host.unknown(), kResultRows), From(0, kResultRows));
    EXPECT_EQ(BitsOf(host.tokens(), kResultRows), From(5, kResultRows));
    EXPECT_EQ(BitsOf(host.logprobs(), kResultRows), From(10, kResultRows));
    EXPECT_EQ(BitsOf(host.statuses(), kResultRows), From(15, kResultRows));
    EXPECT_EQ(BitsOf(host.list_ends(), kEnds), From(20, kEnds));
    EXPECT_EQ(BitsOf(host.top_ids(), kTop), From(23, kTop));
    EXPECT_EQ(BitsOf(host.top_logprobs(), kTop), From(23 + kTop, kTop));
  }
}

TEST(StepResultsTest, TheBestWordsTravelWhenTheyAreWanted) {
  StepResults results(kResultRows, kEnds, 1);
  FillDevice(results);
  std::fill_n(results.host(0).top_ids(), 2 * kTop, -5);
  Stream stream;
  results.QueueCopy(0, false, stream);
  stream.Wait();
  EXPECT_EQ(BitsOf(results.host(0).list_ends(), kEnds), From(20, kEnds));
  EXPECT_EQ(results.host(0).top_ids()[0], -5);
}

}  // namespace
}  // namespace txl::cuda
