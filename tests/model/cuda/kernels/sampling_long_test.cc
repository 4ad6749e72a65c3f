#include <gtest/gtest.h>

#include "tests/model/cuda/device_data.h"
#include "tests/model/cuda/kernels/sampling_rows.h"

namespace txl::cuda {
namespace {

class SamplingLongTest : public ::testing::TestWithParam<size_t> {};

// Sums are in another order than the host's: of so many random rows, none
// comes close enough to a boundary to notice.
TEST_P(SamplingLongTest, RandomRowsGetTheHostsTokens) {
  std::mt19937 random(static_cast<uint32_t>(GetParam()) + 5);
  const VocabularyBins bins = ManyBins()[GetParam()];
  for (int step = 0; step < 100; ++step) {
    StepOptions options;
    const int clusters = static_cast<int>(bins.clusters());
    options.rounds = clusters == 0 ? 0 : 1 + step % (clusters + 1);
    std::vector<RowToSample> rows;
    for (int r = 0; r < 50; ++r) rows.push_back(AnyRow(random, bins));
    ShuffleThreads(step);
    ExpectAsOnHost(bins, rows, options);
  }
}
INSTANTIATE_TEST_SUITE_P(Shapes, SamplingLongTest,
                         ::testing::Range<size_t>(0, ManyBins().size()));

}  // namespace
}  // namespace txl::cuda
