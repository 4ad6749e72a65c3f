#include "server/engine/runner_options.h"

#include "absl/strings/str_cat.h"

namespace txl {
std::vector<std::string> QualityNames() {
  return {kExactQuality, "balanced", "fast"};
}

void ApplyQuality(const std::string& quality,
                  absl::FunctionRef<bool(absl::string_view)> is_given,
                  StepRunnerOptions& options) {
  const auto set = [&](absl::string_view name, const char* value,
                       std::string& setting) {
    if (!is_given(name)) setting = value;
  };
  if (quality == kExactQuality) return;
  const bool fast = quality == "fast";
  set("weights", "int8", options.weights);
  set("derived", fast ? "int8" : "f16", options.derived);
  if (!fast) return;
  set("memory", "int8", options.memory);
  if (options.weights == "int8" || options.weights == "int4") {
    set("products", "int8", options.products);
  }
}

std::string FormatsText(const StepRunnerOptions& options) {
  return absl::StrCat("weights ", options.weights, ", products ",
                      options.products, ", memory ", options.memory,
                      ", derived ", options.derived);
}

}  // namespace txl
