#pragma once

// The instruction set that the kernels run with: the best one that this machine
// has, of those that were compiled in.

#include <string>
#include <vector>

namespace txl {

// "AVX3" (AVX-512), "AVX2", "NEON", "SCALAR", ...
std::string VectorTarget();

// All that this machine can run, best first.
std::vector<std::string> VectorTargets();

// For tests and comparisons: from now on the kernels run with this one of
// VectorTargets(). False: it is not one of them, and nothing changes. Not while
// a step runs.
bool UseVectorTarget(const std::string& name);

}  // namespace txl
