#pragma once

// A result as one HTML page that needs nothing from elsewhere: figures and
// pictures that one can zoom into.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/statusor.h"

namespace txl::bench {

// page.html with the chart library in it; @RESULT@ stands where the result
// goes.
extern const char kPageTemplate[];

// `result`: what --out writes, of one run or of several. Errors:
// InvalidArgument for anything else.
absl::StatusOr<std::string> MakePage(const nlohmann::ordered_json& result);

}  // namespace txl::bench
