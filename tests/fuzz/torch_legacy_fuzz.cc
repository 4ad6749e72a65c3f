// The container of torch.save before torch 1.6.

#include "model/convert/container/torch_checkpoint.h"
#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  const auto plain = txl::ReadTorchLegacy(txl::FuzzFile(data, bytes));
  if (plain.ok()) txl::UsePlainData(*plain);
  return 0;
}
