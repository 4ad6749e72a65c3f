#pragma once

// What a file is, by its first bytes.

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/convert/container/byte_source.h"

namespace txl {

enum class FileKind {
  kTorch,        // zip or legacy
  kSafetensors,  // header length and an opening brace
  kBundleIndex,  // of a TensorFlow checkpoint
  kForeign,      // none that holds a checkpoint; see Foreign()
};

// Errors: DataLoss when the file cannot be read.
absl::StatusOr<FileKind> KindOf(const ByteSource& file);

// What a file of kind kForeign is ("is empty", "is a gzip file", "is a plain
// pickle, no torch file"), for an error message; "is not a checkpoint that
// is known" when nothing fits.
absl::string_view Foreign(const ByteSource& file);

}  // namespace txl
