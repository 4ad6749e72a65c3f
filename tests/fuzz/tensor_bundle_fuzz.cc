// The index of a TensorFlow checkpoint. Checksums would stop a fuzzer at once,
// so the first byte of the input says how deep the rest of it goes in: 0 the
// whole index, 1 the value of a tensor's entry, 2 the entry of a partitioned
// tensor beside that of a partition.

#include <cstdint>
#include <map>
#include <string>

#include "model/convert/container/tensor_bundle.h"
#include "tests/model/convert/container/tensor_bundle_writer.h"

namespace txl {
namespace {

std::string IndexOf(uint8_t depth, const std::string& input) {
  if (depth == 0) return input;
  std::map<std::string, std::string> entries = {{"", BundleHeaderBytes(1)},
                                                {"t", input}};
  if (depth == 2) {
    BundleEntryFields fields;
    fields.shape = {2, 2};
    fields.size = 16;
    entries[SliceKey("t", {{0, 2}, {0, -1}})] = BundleEntryBytes(fields);
    fields.offset = 16;
    entries[SliceKey("t", {{2, 2}, {0, -1}})] = BundleEntryBytes(fields);
  }
  return SortedTableBytes(entries);
}

void Run(uint8_t depth, const std::string& input) {
  const auto data = BytesInMemory(std::string(64, '\0'), "data");
  const auto tensors = ReadBundleIndex(
      *BytesInMemory(IndexOf(depth, input), "index"),
      [&](int, int) -> absl::StatusOr<std::shared_ptr<const ByteSource>> {
        return data;
      });
  if (!tensors.ok()) return;
  for (const auto& [name, tensor] : *tensors) {
    ReadTensor(tensor).status().IgnoreError();
  }
}

}  // namespace
}  // namespace txl

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  txl::Run(data[0],
           std::string(reinterpret_cast<const char*>(data) + 1, size - 1));
  return 0;
}
