#pragma once

// Memory for vector loads: 64-byte aligned, zeroed, never resized. Large buffers
// ask for huge pages: a step streams through gigabytes of them.

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

namespace txl {

// Elements of a trivial type. Movable; not copyable. The allocation is as large
// as asked for, rounded up to whole cache lines or huge pages. Throws std::bad_alloc.
template <typename T>
class AlignedBuffer {
 public:
  static constexpr size_t kAlignment = 64;
  static constexpr size_t kHugePage = size_t{2} << 20;

  AlignedBuffer() = default;
  explicit AlignedBuffer(int64_t size) : size_(size) {
    const size_t bytes = static_cast<size_t>(size) * sizeof(T);
    const size_t unit = bytes >= 2 * kHugePage ? kHugePage : kAlignment;
    const size_t rounded = (bytes + unit - 1) / unit * unit;
    if (rounded == 0) return;
    void* memory = std::aligned_alloc(unit, rounded);
    if (memory == nullptr) throw std::bad_alloc();
#if defined(__linux__)
    if (unit == kHugePage) madvise(memory, rounded, MADV_HUGEPAGE);  // a hint
#endif
    std::memset(memory, 0, rounded);
    data_.reset(static_cast<T*>(memory));
  }

  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  int64_t size() const { return size_; }
  T& operator[](int64_t i) { return data_.get()[i]; }
  const T& operator[](int64_t i) const { return data_.get()[i]; }

 private:
  struct Free {
    void operator()(T* memory) const { std::free(memory); }
  };
  std::unique_ptr<T[], Free> data_;
  int64_t size_ = 0;
};

}  // namespace txl
