// A zip archive as torch writes it.

#include "model/convert/container/torch_checkpoint.h"
#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  const auto plain = txl::ReadTorchZip(txl::FuzzFile(data, bytes));
  if (plain.ok()) txl::UsePlainData(*plain);
  return 0;
}
