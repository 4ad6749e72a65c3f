#include <type_traits>

#include "model/cuda/kernels/linear.h"
#include "model/cuda/kernels/linear_kernels.h"
#include "model/cuda/kernels/linear_plan.h"

namespace txl::cuda {

template <typename T>
void LaunchLinear(Stream& stream, const LinearArgs<T>& args) {
  if constexpr (std::is_same_v<T, float>) {
    LaunchPlainLinear(stream, args);
  } else {
    const LinearPlan plan =
        PlanLinear({args.rows, args.inputs, args.outputs, args.batch});
    if (plan.kernel == LinearKernel::kStream) {
      LaunchStreamLinear(stream, args, plan);
    } else {
      LaunchTileLinear(stream, args, plan);
    }
  }
}

template void LaunchLinear(Stream&, const LinearArgs<float>&);
template void LaunchLinear(Stream&, const LinearArgs<Bf16>&);
template void LaunchLinear(Stream&, const LinearArgs<F16>&);

}  // namespace txl::cuda
