#pragma once

// txl-server keys add|list|revoke --keys FILE

#include <string>
#include <vector>

namespace txl {

// Whether the program's arguments ask for it.
bool IsKeysCommand(const std::vector<std::string>& arguments);

// What was asked for on standard output, of `add` the key as the last word of
// its line, the only time that it is shown. The exit code: 0: done; 1: it
// failed; 2: usage.
int RunKeysCommand(std::vector<std::string> arguments);

}  // namespace txl
