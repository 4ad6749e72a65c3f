#pragma once

// Memory, streams, events and graphs of one device. Two implementations: CUDA
// (runtime_cuda.cu), and the CPU (runtime_emulated.cc), where work is done
// when it is queued. Which one a program has is a matter of what it links.
//
// Everything here throws: DeviceOutOfMemory when memory ran out, DeviceError
// for whatever else the device reports.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"

namespace txl::cuda {

class DeviceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class DeviceOutOfMemory : public std::bad_alloc {
 public:
  explicit DeviceOutOfMemory(size_t bytes);
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  std::string message_;
};

struct DeviceFacts {
  std::string name;
  int processors = 1;              // streaming multiprocessors
  size_t free_bytes = 0;           // of memory, now
  size_t total_bytes = 0;          // of memory
  size_t shared_bytes = 48 << 10;  // most that a block may have
};
// 0 where there is no driver.
int DeviceCount();
// Of the device that this thread uses.
DeviceFacts CurrentDevice();
void UseDevice(int index);

// Where memory lies: on the device, or on the host, page-locked, so that copies
// do not wait.
enum class MemoryKind { kDevice, kPinned };

// Thread-compatible; not cleared.
class Memory {
 public:
  Memory() = default;
  Memory(MemoryKind kind, size_t bytes);
  ~Memory();
  Memory(Memory&& other) noexcept { Swap(other); }
  Memory& operator=(Memory&& other) noexcept {
    Memory moved(std::move(other));
    Swap(moved);
    return *this;
  }

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  void Swap(Memory& other) noexcept {
    std::swap(kind_, other.kind_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }

  MemoryKind kind_ = MemoryKind::kDevice;
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

// `size` elements of a trivial type.
template <typename T>
class Array {
 public:
  Array() = default;
  Array(MemoryKind kind, int64_t size)
      : memory_(kind, static_cast<size_t>(size) * sizeof(T)), size_(size) {}

  T* data() const { return static_cast<T*>(memory_.data()); }
  int64_t size() const { return size_; }
  int64_t bytes() const { return static_cast<int64_t>(memory_.bytes()); }

 private:
  Memory memory_;
  int64_t size_ = 0;
};

class Event;

// A queue of work on the device. Thread-compatible.
class Stream {
 public:
  Stream();
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // From anywhere to anywhere. Memory that is not pinned may be waited for.
  void Copy(void* to, const void* from, size_t bytes);
  // `rows` pieces of `bytes`, `to_pitch` and `from_pitch` bytes apart.
  struct Pieces {
    size_t bytes = 0;
    size_t rows = 0;
    size_t to_pitch = 0;
    size_t from_pitch = 0;
  };
  void CopyPieces(void* to, const void* from, const Pieces& pieces);
  void Fill(void* to, int byte, size_t bytes);

  void Record(Event& event);
  void WaitFor(const Event& event);
  // Until everything that was queued is done.
  void Wait();

  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

// A point of a stream's work.
class Event {
 public:
  Event();
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void Wait() const;
  // REQUIRES: both were recorded and waited for.
  double SecondsSince(const Event& earlier) const;

  struct Impl;
  const Impl& impl() const { return *impl_; }
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

// Work that was queued once and can be launched many times as one.
class Graph {
 public:
  // `queue` queues the work on `stream`, which runs none of it. No memory may
  // be taken or given back inside, and nothing waited for.
  static std::unique_ptr<Graph> Capture(Stream& stream,
                                        absl::FunctionRef<void()> queue);
  virtual ~Graph() = default;
  virtual void Launch(Stream& stream) = 0;
};

}  // namespace txl::cuda
