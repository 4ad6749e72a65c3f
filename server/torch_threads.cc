#include "server/torch_threads.h"

#include <ATen/Parallel.h>

namespace txl {

void SetTorchThreads(int threads) {
  if (threads > 0) at::set_num_threads(threads);
}

}  // namespace txl
