#pragma once

// Memory for vector loads: 64-byte aligned, zeroed, never resized. Large
// buffers are mapped: their pages are taken from the system when they are first
// written, and huge ones asked for, since a step streams through gigabytes of
// them.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "model/base/host_memory.h"

namespace txl {

// Elements of a trivial type. Movable; not copyable. Throws std::bad_alloc.
template <typename T>
class AlignedBuffer {
 public:
  static constexpr size_t kAlignment = 64;

  AlignedBuffer() = default;
  explicit AlignedBuffer(int64_t size) : size_(size) {
    const size_t bytes = static_cast<size_t>(size) * sizeof(T);
    if (bytes == 0) return;
    const bool mapped = bytes >= 2 * kHugePage;
    const size_t unit = mapped ? kHugePage : kAlignment;
    const size_t rounded = (bytes + unit - 1) / unit * unit;
    void* memory = mapped ? MapPages(rounded) : Allocate(rounded);
    data_ = Data(static_cast<T*>(memory), Free{mapped ? rounded : 0});
  }

  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  int64_t size() const { return size_; }
  T& operator[](int64_t i) { return data_.get()[i]; }
  const T& operator[](int64_t i) const { return data_.get()[i]; }

 private:
  struct Free {
    size_t mapped = 0;  // bytes; 0: not mapped
    void operator()(T* memory) const {
      if (mapped != 0) {
        UnmapPages(memory, mapped);
      } else {
        std::free(memory);
      }
    }
  };
  using Data = std::unique_ptr<T[], Free>;

  static void* Allocate(size_t bytes) {
    void* memory = std::aligned_alloc(kAlignment, bytes);
    if (memory == nullptr) throw std::bad_alloc();
    std::memset(memory, 0, bytes);
    return memory;
  }

  Data data_;
  int64_t size_ = 0;
};

}  // namespace txl
