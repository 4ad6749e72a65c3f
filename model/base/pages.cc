#include "model/base/pages.h"

#include <sys/mman.h>

#include <new>

namespace txl {

void* MapPages(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
#if defined(MADV_HUGEPAGE)
  madvise(memory, bytes, MADV_HUGEPAGE);  // a hint: it may be refused
#endif
  return memory;
}

void UnmapPages(void* memory, size_t bytes) noexcept { munmap(memory, bytes); }

}  // namespace txl
