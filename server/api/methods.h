#pragma once

// The table of the API's methods, and that of administration, which has another
// listener.

#include "absl/strings/string_view.h"
#include "server/api/api_call.h"

namespace txl {

// The method of that name, "txl.v1.GenerationService/Generate"; null: there is
// none.
const ApiMethod* FindMethod(absl::string_view name);
// FindMethod for administration, "txl.v1.AdminService/Dump".
const ApiMethod* FindAdminMethod(absl::string_view name);

}  // namespace txl
