#pragma once

// Tensors as torch's pickles rebuild them.

#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "model/convert/container/pickle_value.h"
#include "model/convert/container/stored_tensor.h"
#include "model/convert/container/torch_storage.h"

namespace txl {

// Whether a call of this global gives a tensor that RebuildTensor knows.
bool RebuildsTensor(absl::string_view global);

// The global's first argument is what it returns: parameters.
bool WrapsTensor(absl::string_view global);

// The tensor; nothing when its elements are of a type that DType lacks.
// Errors: InvalidArgument saying what is wrong (arguments of another form, a
// view outside its storage); those of TorchStorages::Open.
absl::StatusOr<std::optional<StoredTensor>> RebuildTensor(
    absl::string_view global, absl::Span<const PickleValue* const> args,
    TorchStorages& storages);

}  // namespace txl
