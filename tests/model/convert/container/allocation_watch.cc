#include "tests/model/convert/container/allocation_watch.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<size_t> largest{0};

}  // namespace

void* operator new(size_t bytes) {
  size_t before = largest.load();
  while (bytes > before && !largest.compare_exchange_weak(before, bytes)) {
  }
  void* memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace txl {

AllocationWatch::AllocationWatch() { largest = 0; }
size_t AllocationWatch::largest_bytes() const { return largest; }

}  // namespace txl
