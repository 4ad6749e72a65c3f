#pragma once

// NumPy's .npy files: one array each.

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/convert/container/byte_source.h"
#include "model/convert/container/stored_tensor.h"

namespace txl {

// What the header of a .npy file says.
struct NpyHeader {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  bool fortran_order = false;  // the first index runs fastest
};

// Parses the text of a header: a Python dictionary of exactly 'descr',
// 'fortran_order' and 'shape'. Errors: InvalidArgument saying what is wrong
// (no such dictionary, objects or records, big-endian numbers, an unsupported
// dtype, more than 8 dimensions).
absl::StatusOr<NpyHeader> ParseNpyHeader(absl::string_view text);

// Whether the file starts like one. False also when it cannot be read.
bool LooksLikeNpy(const ByteSource& file);

// The array as a view of the file; versions 1 to 3. Errors: InvalidArgument
// naming the file; a size other than shape and dtype say is one.
absl::StatusOr<StoredTensor> ReadNpy(std::shared_ptr<const ByteSource> file);

}  // namespace txl
