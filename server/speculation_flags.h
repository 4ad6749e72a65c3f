#pragma once

// The flags of what speculation.h sets up.

#include <cstdint>
#include <string>

#include "server/flag_table.h"

namespace txl {

// Both outlive the table.
void AddGuessFlags(std::string* speculate, int32_t* tokens, FlagTable* table);

}  // namespace txl
