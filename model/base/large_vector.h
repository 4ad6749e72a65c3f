#pragma once

// A vector of what may be hundreds of megabytes. Elements that a resize adds
// have no value until they are given one, and memory of many pages comes as
// huge ones: making a vector of 118 MB full takes a quarter of the time.

#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "model/base/host_memory.h"

namespace txl {

// The element type must be trivial. Throws std::bad_alloc.
template <typename T>
class LargeAllocator {
 public:
  using value_type = T;

  LargeAllocator() = default;
  template <typename U>
  explicit LargeAllocator(const LargeAllocator<U>&) {}

  T* allocate(size_t count) {
    return static_cast<T*>(IsLarge(count) ? MapPages(count * sizeof(T))
                                          : ::operator new(count * sizeof(T)));
  }
  void deallocate(T* memory, size_t count) noexcept {
    if (IsLarge(count)) {
      UnmapPages(memory, count * sizeof(T));
    } else {
      ::operator delete(memory);
    }
  }
  template <typename U, typename... Args>
  void construct(U* element, Args&&... args) {
    if constexpr (sizeof...(Args) == 0) {
      ::new (static_cast<void*>(element)) U;
    } else {
      ::new (static_cast<void*>(element)) U(std::forward<Args>(args)...);
    }
  }

  friend bool operator==(const LargeAllocator&, const LargeAllocator&) {
    return true;
  }

 private:
  static bool IsLarge(size_t count) {
    return count * sizeof(T) >= 2 * kHugePage;
  }
};

template <typename T>
using LargeVector = std::vector<T, LargeAllocator<T>>;

}  // namespace txl
