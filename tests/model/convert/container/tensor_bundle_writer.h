#pragma once

// TensorFlow checkpoints for tests.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "model/checkpoint/safetensors.h"

namespace txl {

struct BundleTensor {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  std::string bytes;  // little-endian, row-major
};

// Writes PREFIX.index and PREFIX.data-00000-of-00001 as TensorFlow's Saver
// does: sorted names, no padding. Errors: as of opening and writing files;
// sizes are not checked, so that a test can write wrong ones.
absl::Status WriteTensorBundle(
    const std::string& prefix,
    const std::map<std::string, BundleTensor>& tensors);

// The index alone, of serialized header and entries by key. Blocks hold about
// `block_bytes`.
std::string SortedTableBytes(const std::map<std::string, std::string>& entries,
                             size_t block_bytes = 4096);

// Field values of the index, for tests that damage them.
struct BundleEntryFields {
  int dtype = 1;  // TensorFlow's number
  std::vector<int64_t> shape;
  int shard_id = 0;
  int64_t offset = 0;
  int64_t size = 0;
  uint32_t masked_crc32c = 0;
};
std::string BundleEntryBytes(const BundleEntryFields& fields);
std::string BundleHeaderBytes(int shards, int endianness = 0,
                              int min_consumer = 0);

}  // namespace txl
