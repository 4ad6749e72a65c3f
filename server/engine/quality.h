#pragma once

// Presets of the CPU's number formats: what --quality sets.
//
//   exact     float32 everywhere
//   balanced  --weights int8 --derived f16
//   fast      --weights int8 --products int8 --memory int8 --derived int8

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "server/engine/runner_options.h"

namespace txl {

inline constexpr char kExactQuality[] = "exact";
// By accuracy, the best first.
std::vector<std::string> QualityNames();

// Sets what the preset names, but for settings that were given: these win, and
// products become integer ones only where weights are int8 or int4 in the end.
// REQUIRES: quality is one of QualityNames().
void ApplyQuality(const std::string& quality,
                  absl::FunctionRef<bool(absl::string_view)> is_given,
                  StepRunnerOptions& options);

// "weights int8, products float, memory f32, derived f16"
std::string FormatsText(const StepRunnerOptions& options);

}  // namespace txl
