#pragma once

// Where in a checkpoint a model lies: at the root, under "model_state.", under
// "module." of a data-parallel wrapper, ...

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/convert/container/native_checkpoint.h"

namespace txl {

// Whether a tensor's dotted place contains `part` at the begin of a component:
// "crit.out_layers." is in "model_state.crit.out_layers.0.bias".
bool HasPart(const NativeCheckpoint& checkpoint, absl::string_view part);

// What stands before `name` in the place of the one tensor that ends with it:
// "" or with a final dot. Errors: InvalidArgument when there is none or more
// than one.
absl::StatusOr<std::string> PlaceBefore(const NativeCheckpoint& checkpoint,
                                        absl::string_view name);

// The object at a dotted place of the data, through the "_modules" of pickled
// modules; null when there is none. It lives as long as `data`.
const nlohmann::json* ObjectAt(const nlohmann::json& data,
                               absl::string_view place);

// Member `key` of an object; discarded when `object` is null or no object, or
// the member is absent or null.
nlohmann::json Member(const nlohmann::json* object, absl::string_view key);

}  // namespace txl
