#include "server/torch_threads.h"

#include <ATen/Parallel.h>

#include <algorithm>

namespace txl {
namespace {

constexpr int64_t kSmallModelParameters = 20'000'000;

}  // namespace

int ChooseThreads(int wanted, int cores, int64_t parameters) {
  if (wanted > 0) return wanted;
  if (parameters < kSmallModelParameters) return 1;
  return std::max(cores, 1);
}

void SetTorchThreads(int threads) { at::set_num_threads(threads); }

}  // namespace txl
