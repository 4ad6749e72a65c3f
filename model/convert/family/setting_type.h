#pragma once

// Settings of a checkpoint's own configuration have the types that its code
// gives them. One of another type is an error that names it: a default in its
// place would be another model.

#include <nlohmann/json.hpp>

#include "absl/strings/string_view.h"
#include "model/convert/family/tensor_table.h"

namespace txl {

enum class SettingType {
  kFlag,    // true or false; also 1 or 0, which Python takes as such
  kInt,     // also a float without a fraction
  kNumber,  // finite
  kFlags,   // a list of flags
  kInts,    // a list of integers
};

// Member `key` of `object` as its type; discarded when it is absent or null
// (as of Member) and, with an error in the table that opens with `place` and
// the key ("field args.same_length"), when it has another.
nlohmann::json TypedMember(const nlohmann::json* object, absl::string_view key,
                           SettingType type, absl::string_view place,
                           TensorTable& table);

}  // namespace txl
