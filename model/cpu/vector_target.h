#pragma once

// The instruction set that the kernels run with: the best one that this machine
// has, of those that were compiled in.

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace txl {

// "AMX" (AVX3_DL, and integer products on tiles), "AVX3_DL" (AVX-512 with
// VNNI), "AVX3", "AVX2", "NEON", "SCALAR", ...
std::string VectorTarget();

// The one whose bits they are: AVX3_DL for AMX, whose sums are the same.
std::string VectorBits();

// Whether integer products run on tiles (tile_product.h): with AMX.
bool UsesTiles();

// All that this machine can run, best first.
std::vector<std::string> VectorTargets();

// From now on the kernels run with this one of VectorTargets(), in any case of
// letters. False: it is not one of them, nor is "auto", and nothing changes.
// Not while a step runs.
bool UseVectorTarget(const std::string& name);

// The setting that leaves the choice as it is.
inline constexpr char kAutoVectorTarget[] = "auto";
// "auto" or a name as above; InvalidArgument with this machine's names for any
// other.
absl::Status CheckVectorTarget(const std::string& setting);

}  // namespace txl
