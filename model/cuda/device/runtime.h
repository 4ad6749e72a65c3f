#pragma once

// Memory, streams, events and graphs of one device. Two implementations: CUDA
// (runtime_cuda.cu), and the CPU (tests/model/cuda/emulator), where tests run.
// Which one a program has is a matter of what it links.
//
// Everything here throws: DeviceOutOfMemory when memory ran out, DeviceError
// for whatever else the device reports. After DeviceOutOfMemory, and after a
// DeviceError about the arguments of a call, everything can go on; an error in
// a kernel (reported by some later call) ends the use of the device by this
// process.
//
// The emulated device does what is queued at once or, at random, as late as
// somebody waits for it: a host that does not wait long enough is noticed.

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
  int capability = 0;              // 10 * major + minor: 80 A100, 90 H100
  int processors = 1;              // streaming multiprocessors
  size_t free_bytes = 0;           // of memory, now
  size_t total_bytes = 0;          // of memory
  size_t shared_bytes = 48 << 10;  // most that a block may have
};
// 0 where there is no driver.
int DeviceCount();
// Facts of the device that this thread uses.
DeviceFacts CurrentDevice();
void UseDevice(int index);

// Where memory lies: on the device, or on the host, page-locked, so that copies
// do not wait.
enum class MemoryKind { kDevice, kPinned };

// Thread-compatible. Aligned to 16 bytes; not cleared. Giving memory back waits
// for all work of the device.
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

  // Null where bytes() is 0.
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

// `size` >= 0 elements of a trivial type.
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

// A queue of work on the device. Thread-compatible. Its end waits for the work.
class Stream {
 public:
  Stream();
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Copies from anywhere to anywhere, without overlap. Host memory stays as it
  // is until the copy is done; memory that is not pinned may be waited for.
  void Copy(void* to, const void* from, size_t bytes);
  // `rows` pieces of `bytes`, `to_pitch` and `from_pitch` bytes apart, each at
  // least `bytes` and less than 2^31.
  struct Pieces {
    size_t bytes = 0;
    size_t rows = 0;
    size_t to_pitch = 0;
    size_t from_pitch = 0;
  };
  void CopyPieces(void* to, const void* from, const Pieces& pieces);
  // Whether a kernel that is queued from now on may begin while the one that
  // was queued before it still runs (kernel.h, AwaitEarlierKernels): on devices
  // that can, H100 and later. At first: no.
  void OverlapKernels(bool overlaps);
  // Sets bytes of memory on the device.
  void Fill(void* to, int byte, size_t bytes);

  void Record(Event& event);
  void WaitFor(const Event& event);
  // Blocks until everything that was queued is done.
  void Wait();

  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

// A point of a stream's work. One that was never recorded is done.
class Event {
 public:
  Event();
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  // Blocks until the work before the last Record is done.
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
  // `queue` queues kernels, copies and fills on `stream`, which runs none of
  // them. Inside, this thread takes and gives back no memory, waits for
  // nothing, uses no event and launches no graph. Throws what `queue` throws;
  // the stream can be used afterwards either way.
  static std::unique_ptr<Graph> Capture(Stream& stream,
                                        absl::FunctionRef<void()> queue);
  virtual ~Graph() = default;
  // Keeps the arguments it was captured with: what changes from launch to
  // launch lies in memory. REQUIRES: the graph lives until the work is done.
  virtual void Launch(Stream& stream) = 0;
};

}  // namespace txl::cuda
