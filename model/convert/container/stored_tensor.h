#pragma once

// A tensor that lies in a file: a strided view of a storage. Cutting, turning
// and picking rows only change the view; nothing is read before ReadTensor.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "model/checkpoint/safetensors.h"
#include "model/convert/container/byte_source.h"

namespace txl {

struct StoredTensor {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;    // every size >= 0; at most 8 dimensions
  std::vector<int64_t> strides;  // in elements; negative only after FlipRows
  int64_t offset = 0;            // of element [0, ..., 0], in elements
  std::shared_ptr<const ByteSource> storage;  // little-endian elements

  int64_t dims() const { return static_cast<int64_t>(shape.size()); }
  int64_t numel() const;
  int64_t bytes() const { return numel() * DTypeBytes(dtype); }
};

// Whether two views show the same elements of the same storage: a tied tensor.
bool SameView(const StoredTensor& a, const StoredTensor& b);

// A row-major tensor over a whole storage. Errors: InvalidArgument naming the
// storage when its size is not that of `shape` (negative sizes and products
// that overflow included).
absl::StatusOr<StoredTensor> RowMajor(DType dtype, std::vector<int64_t> shape,
                                      std::shared_ptr<const ByteSource> bytes);

// A view with given strides, as torch's _rebuild_tensor_v2 makes it. Errors:
// InvalidArgument saying which (negative size, stride or offset, more than 8
// dimensions, an element outside the storage, a product that overflows).
absl::StatusOr<StoredTensor> Strided(DType dtype, std::vector<int64_t> shape,
                                     std::vector<int64_t> strides,
                                     int64_t offset,
                                     std::shared_ptr<const ByteSource> bytes);

// Views of views. REQUIRES of each: indices inside the shape.
StoredTensor Rows(const StoredTensor& t, int64_t begin, int64_t end);
StoredTensor Columns(const StoredTensor& t, int64_t begin, int64_t end);
StoredTensor Transposed(const StoredTensor& t);  // 2 dimensions
StoredTensor FlippedRows(const StoredTensor& t);
// Row `index` with the first dimension dropped.
StoredTensor At(const StoredTensor& t, int64_t index);
// Dimension `dim` dropped. REQUIRES: its size is 1.
StoredTensor Squeezed(const StoredTensor& t, int64_t dim);

// The elements in row-major order. Allocates bytes() and, for a view that is
// not contiguous, at most the bytes between its first and last element more.
// Errors: as ByteSource::Read; InvalidArgument for a view that repeats elements
// (strides of 0) until they are more than 64 MiB and than the whole storage.
absl::StatusOr<std::string> ReadTensor(const StoredTensor& t);

// Reads strided views of storages in row-major order.

// Elements of 1, 2, 4 or 8 bytes; numbers count elements.
struct StridedView {
  int64_t element_bytes = 0;
  absl::Span<const int64_t> shape;  // no size is 0
  absl::Span<const int64_t> strides;
  int64_t offset = 0;
};

// Writes the elements in row-major order to `out`, which has room for them.
// Reads the storage in pieces of 64 MiB where the view is not contiguous.
// Errors: as ByteSource::Read.
absl::Status ReadStrided(const ByteSource& storage, const StridedView& view,
                         char* out);

}  // namespace txl
