#include "model/cuda/step/cuda_shape.h"

#include <algorithm>

#include "model/cuda/kernels/linear.h"

namespace txl::cuda {

int PaddedWidth(int64_t width) {
  return static_cast<int>((width + kLinearUnit - 1) / kLinearUnit *
                          kLinearUnit);
}

CudaShape MakeCudaShape(const ModelConfig& config) {
  CudaShape shape;
  shape.layers = static_cast<int>(config.n_layer);
  shape.heads = static_cast<int>(config.n_head);
  shape.width = static_cast<int>(config.d_model);
  shape.stride = PaddedWidth(config.d_model);
  shape.head_width = static_cast<int>(config.d_head);
  shape.head_stride = PaddedWidth(config.d_head);
  shape.inner_stride = PaddedWidth(config.d_inner);
  shape.distances = static_cast<int>(config.position_distances());
  shape.distance_stride = PaddedWidth(shape.distances);
  return shape;
}

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
