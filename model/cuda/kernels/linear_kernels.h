#pragma once

// The kernels behind LaunchLinear (linear.h).

#include "model/cuda/kernels/linear.h"
#include "model/cuda/kernels/linear_plan.h"

namespace txl::cuda {

// Multiply-adds in the order of the inputs; any shape.
void LaunchPlainLinear(Stream& stream, const LinearArgs<float>& args);

// Tensor cores, T Bf16 or F16; plan.kernel is kStream, kTiles.
template <typename T>
void LaunchStreamLinear(Stream& stream, const LinearArgs<T>& args,
                        const LinearPlan& plan);
template <typename T>
void LaunchTileLinear(Stream& stream, const LinearArgs<T>& args,
                      const LinearPlan& plan);

}  // namespace txl::cuda
