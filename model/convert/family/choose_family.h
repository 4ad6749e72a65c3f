#pragma once

// Which family a checkpoint is of.

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "model/convert/family/family.h"

namespace txl {

// All of them, in the order of the documents.
absl::Span<const Family> Families();

// The family `format` ("auto": by its signature). Errors: InvalidArgument with
// the known ids, or saying what was found instead of a signature.
absl::StatusOr<const Family*> ChooseFamily(absl::string_view format,
                                           const NativeCheckpoint& checkpoint);

}  // namespace txl
