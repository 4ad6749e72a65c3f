#pragma once

// The flags of what speculation.h sets up.

#include <cstdint>
#include <string>

#include "server/flag_table.h"

namespace txl {

// All outlive the table.
void AddGuessFlags(std::string* speculate, int32_t* tokens, std::string* draft,
                   FlagTable* table);

}  // namespace txl
