#pragma once

// What Linux says about this process and its machine; empty or 0 elsewhere.

#include <cstdint>
#include <string>

namespace txl {

int64_t ResidentBytes();  // of this process
std::string CpuName();

}  // namespace txl
