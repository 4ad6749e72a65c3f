// Any bytes as a safetensors file. The reader maps files: this one lies in
// memory.

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "model/convert/container/open_file_checkpoint.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const int fd = memfd_create("fuzz", MFD_CLOEXEC);
  if (fd < 0 || write(fd, data, size) != static_cast<ssize_t>(size)) abort();
  const auto checkpoint =
      txl::ReadSafetensorsFile("/proc/self/fd/" + std::to_string(fd));
  if (checkpoint.ok()) {
    for (const auto& [name, tensor] : checkpoint->tensors) {
      txl::ReadTensor(tensor).status().IgnoreError();
    }
  }
  close(fd);
  return 0;
}
