#pragma once

// txl-server store check|repair|compact DIR

#include <string>
#include <vector>

namespace txl {

// Whether the program's arguments ask for it.
bool IsStoreCommand(const std::vector<std::string>& arguments);

// What was found on standard output, how far it is on standard error. The exit
// code: 0: done, the store is sound; 1: it failed, or there is damage that is
// still there; 2: usage.
int RunStoreCommand(const std::vector<std::string>& arguments);

}  // namespace txl
