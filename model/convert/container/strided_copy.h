#pragma once

// Reads strided views of storages in row-major order.

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "model/convert/container/byte_source.h"

namespace txl {

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
