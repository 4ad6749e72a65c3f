#pragma once

// The flags that say how the native step keeps and multiplies numbers.

#include <string>

#include "server/engine/runner_options.h"
#include "server/flag_table.h"

namespace txl {

// --quality, --weights, --memory, --derived, --products. The targets outlive
// the table.
void AddFormatFlags(std::string* quality, StepRunnerOptions* runner,
                    FlagTable* table);

}  // namespace txl
