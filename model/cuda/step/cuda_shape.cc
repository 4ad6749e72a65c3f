#include "model/cuda/step/cuda_shape.h"

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

}  // namespace txl::cuda
