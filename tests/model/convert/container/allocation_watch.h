#pragma once

// Watches what a test program allocates: operator new is replaced in it.

#include <cstddef>

namespace txl {

// The largest single allocation since the object was made, on any thread. One
// object at a time.
class AllocationWatch {
 public:
  AllocationWatch();
  size_t largest_bytes() const;
};

}  // namespace txl
