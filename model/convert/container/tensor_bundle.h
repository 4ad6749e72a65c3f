#pragma once

// TensorFlow's checkpoints since version 1 ("V2" of its Saver): PREFIX.index,
// a sorted table from names to places, and the raw data in
// PREFIX.data-NNNNN-of-NNNNN.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "model/convert/container/byte_source.h"
#include "model/convert/container/native_checkpoint.h"
#include "model/convert/container/stored_tensor.h"

namespace txl {

// Data file `shard` of `shards`.
using OpenBundleShard =
    std::function<absl::StatusOr<std::shared_ptr<const ByteSource>>(
        int shard, int shards)>;

// The tensors of an index by variable name. Variables that were partitioned
// along their first dimension are joined; the checksum of a tensor's bytes is
// verified when they are first read. Errors: InvalidArgument naming the file
// and the tensor (damaged table, no little-endian data, a newer format, an
// unsupported dtype, bytes beyond the data file or of another size than dtype
// and shape say, partitions that leave a gap, overlap or cut another
// dimension); those of `open`.
absl::StatusOr<std::map<std::string, StoredTensor>> ReadBundleIndex(
    const ByteSource& index, const OpenBundleShard& open);

// The checkpoint whose files start with `prefix`.
absl::StatusOr<NativeCheckpoint> ReadTensorBundle(const std::string& prefix);

// Partitioned variables in the index of a TensorFlow checkpoint.

// The part of a dimension that a slice holds; a negative length: all of it.
struct SliceExtent {
  int64_t start = 0;
  int64_t length = -1;
};

// The key under which the index lists a slice of variable `name`: a code that
// sorts by name, then by extents.
std::string SliceKey(absl::string_view name,
                     absl::Span<const SliceExtent> extents);

// Rows [begin, end) of a slice that is whole in all dimensions but the first.
struct SliceRows {
  int64_t begin = 0;
  int64_t end = 0;
};

// Errors: InvalidArgument saying what is wrong ("is cut along dimension 1").
absl::StatusOr<SliceRows> RowsOfSlice(absl::Span<const SliceExtent> extents,
                                      absl::Span<const int64_t> shape);

}  // namespace txl
