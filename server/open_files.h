#pragma once

#include <cstdint>

namespace txl {

struct OpenFiles {
  int64_t before = 0;  // the soft limit, -1: none or unknown
  int64_t now = 0;     // the same after raising
};

// Raises the soft limit of open files to the hard one: every connection is one,
// and where they run out gRPC 1.51 never accepts a connection again.
OpenFiles RaiseOpenFiles();

// Below it, connections run out before memory does.
inline constexpr int64_t kFewOpenFiles = 4096;

}  // namespace txl
