#pragma once

// What Linux says about this process and its machine; empty or 0 elsewhere.

#include <string>

namespace txl {

double ProcessorSeconds();  // user and system, of this process so far
std::string CpuName();

}  // namespace txl
