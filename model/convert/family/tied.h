#pragma once

// Whether two names of a checkpoint are one tensor.

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "model/convert/container/stored_tensor.h"
#include "model/convert/family/plan_builder.h"

namespace txl {

// Whether the elements are equal bit for bit, read in bounded pieces. Errors:
// as ReadTensor.
absl::StatusOr<bool> SameElements(const StoredTensor& a, const StoredTensor& b);

// Whether tensor `own` is tied to `other`, both of `builder.table`. One view of
// one storage is tied, and so is an absent `own` unless `configured` is false.
// Of two storages `configured` decides: tied ones must be equal then, anything
// else is an error in the table; what was assumed becomes an oddity. A tied
// `own` counts as used.
bool IsTied(PlanBuilder& builder, const std::string& own,
            const std::string& other, std::optional<bool> configured);

}  // namespace txl
