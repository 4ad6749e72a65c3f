#include "model/cuda/step/step_buckets.h"

#include <algorithm>

namespace txl::cuda {

std::vector<int> StepBuckets(int64_t max_rows) {
  std::vector<int> buckets = {1, 2, 4, 8, 16};
  while (buckets.back() < max_rows) {
    buckets.push_back(buckets.back() + (buckets.back() < 128 ? 16 : 32));
  }
  return buckets;
}

size_t BucketOf(const std::vector<int>& buckets, int64_t rows) {
  return static_cast<size_t>(
      std::lower_bound(buckets.begin(), buckets.end(), rows) - buckets.begin());
}

}  // namespace txl::cuda
