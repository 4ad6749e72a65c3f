#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "model/cuda/device/launch.h"
#include "model/cuda/device/runtime.h"

namespace txl::cuda {

using Clock = std::chrono::steady_clock;
using Work = std::function<void()>;

namespace {

// As on an H100, but for the memory.
constexpr size_t kDeviceBytes = size_t{1} << 30;
constexpr size_t kSharedBytes = 227 << 10;

// The point that an event was recorded at.
struct Mark {
  Stream::Impl* stream;  // valid until it is reached
  bool reached = false;
  Clock::time_point when;
};

// What this thread does between a capture's begin and end.
thread_local std::vector<Work>* captured = nullptr;
thread_local Stream::Impl* captured_stream = nullptr;
thread_local bool capture_failed = false;
// Calls until one of this thread's fails.
thread_local int calls_to_failure = 0;

void RefuseInCapture(const char* what) {
  if (captured == nullptr) return;
  capture_failed = true;
  throw DeviceError(absl::StrCat(what, " inside of a capture"));
}

}  // namespace

struct Stream::Impl {
  std::deque<Work> queue;

  void Run() {
    while (!queue.empty()) RunOne();
  }
  void RunUntil(const Mark& mark) {
    while (!mark.reached) RunOne();
  }
  void RunOne() {
    const Work work = std::move(queue.front());
    queue.pop_front();
    work();
  }
};

namespace {

// All that threads share; whoever does any work has the lock.
struct Device {
  std::recursive_mutex lock;
  std::vector<Stream::Impl*> streams;
  size_t taken_bytes = 0;
};
Device& TheDevice() {
  static Device* const device = new Device;
  return *device;
}
using Lock = std::lock_guard<std::recursive_mutex>;

}  // namespace

DeviceOutOfMemory::DeviceOutOfMemory(size_t bytes)
    : message_(absl::StrCat("the device has no room for ", bytes, " bytes")) {}

int DeviceCount() { return 1; }

DeviceFacts CurrentDevice() {
  const Lock lock(TheDevice().lock);
  DeviceFacts facts;
  facts.name = "emulated";
  facts.capability = 90;
  facts.processors = 4;
  facts.total_bytes = kDeviceBytes;
  facts.free_bytes = kDeviceBytes - TheDevice().taken_bytes;
  facts.shared_bytes = kSharedBytes;
  return facts;
}

void UseDevice(int index) {
  if (index != 0) throw DeviceError(absl::StrCat("no device ", index));
}

// malloc aligns to 16 bytes and no more.
Memory::Memory(MemoryKind kind, size_t bytes) : kind_(kind), bytes_(bytes) {
  RefuseInCapture("taking memory");
  if (bytes == 0) return;
  const Lock lock(TheDevice().lock);
  if (bytes > CurrentDevice().free_bytes) throw DeviceOutOfMemory(bytes);
  data_ = std::malloc(bytes);
  if (data_ == nullptr) throw DeviceOutOfMemory(bytes);
  TheDevice().taken_bytes += bytes;
  std::memset(data_, 0xff, bytes);  // what nobody wrote is NaN
}

Memory::~Memory() {
  if (data_ == nullptr) return;
  if (captured != nullptr) capture_failed = true;
  const Lock lock(TheDevice().lock);
  for (Stream::Impl* stream : TheDevice().streams) stream->Run();
  TheDevice().taken_bytes -= bytes_;
  std::free(data_);
}

void emulator::FailQueueing(int nth) { calls_to_failure = nth; }

// A kernel's launch ends up here too (launch.h).
void RunOn(Stream& stream, Work work) {
  if (calls_to_failure > 0 && --calls_to_failure == 0) {
    throw DeviceOutOfMemory(1);
  }
  if (captured_stream == &stream.impl()) {
    captured->push_back(std::move(work));
    return;
  }
  const Lock lock(TheDevice().lock);
  stream.impl().queue.push_back(std::move(work));
  if (emulator::Random() % 2 == 0) stream.impl().Run();
}

void CheckShape(const LaunchShape& shape) {
  const char* error = ShapeError(shape);
  if (error == nullptr && shape.shared_bytes > kSharedBytes) {
    error = "too much shared memory";
  }
  if (error != nullptr) {
    throw DeviceError(absl::StrCat("launching a kernel: ", error));
  }
}

void Stream::OverlapKernels(bool /*overlaps*/) {}

Stream::Stream() : impl_(std::make_unique<Impl>()) {
  const Lock lock(TheDevice().lock);
  TheDevice().streams.push_back(impl_.get());
}

Stream::~Stream() {
  const Lock lock(TheDevice().lock);
  impl_->Run();
  std::erase(TheDevice().streams, impl_.get());
}

void Stream::Copy(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  RunOn(*this, [=] { std::memcpy(to, from, bytes); });
}

void Stream::CopyPieces(void* to, const void* from, const Pieces& pieces) {
  if (pieces.bytes == 0 || pieces.rows == 0) return;
  if (pieces.bytes > std::min(pieces.to_pitch, pieces.from_pitch)) {
    throw DeviceError("copying: pieces that overlap");
  }
  RunOn(*this, [=] {
    for (size_t row = 0; row < pieces.rows; ++row) {
      std::memcpy(static_cast<char*>(to) + row * pieces.to_pitch,
                  static_cast<const char*>(from) + row * pieces.from_pitch,
                  pieces.bytes);
    }
  });
}

void Stream::Fill(void* to, int byte, size_t bytes) {
  if (bytes == 0) return;
  RunOn(*this, [=] { std::memset(to, byte, bytes); });
}

struct Event::Impl {
  std::shared_ptr<Mark> mark;
};

void Stream::Record(Event& event) {
  RefuseInCapture("recording an event");
  const auto mark = std::make_shared<Mark>(Mark{impl_.get(), false, {}});
  event.impl().mark = mark;
  RunOn(*this, [mark] {
    mark->reached = true;
    mark->when = Clock::now();
  });
}

void Stream::WaitFor(const Event& event) {
  RefuseInCapture("waiting for an event");
  if (event.impl().mark == nullptr) return;
  RunOn(*this, [mark = event.impl().mark] {
    if (!mark->reached) mark->stream->RunUntil(*mark);
  });
}

void Stream::Wait() {
  RefuseInCapture("waiting");
  const Lock lock(TheDevice().lock);
  impl_->Run();
}

Event::Event() : impl_(std::make_unique<Impl>()) {}
Event::~Event() = default;

void Event::Wait() const {
  RefuseInCapture("waiting");
  const Lock lock(TheDevice().lock);
  const std::shared_ptr<Mark> mark = impl_->mark;
  if (mark != nullptr && !mark->reached) mark->stream->RunUntil(*mark);
}

double Event::SecondsSince(const Event& earlier) const {
  return std::chrono::duration<double>(impl_->mark->when -
                                       earlier.impl_->mark->when)
      .count();
}

namespace {

class EmulatedGraph final : public Graph {
 public:
  explicit EmulatedGraph(std::vector<Work> work)
      : work_(std::make_shared<std::vector<Work>>(std::move(work))) {}
  void Launch(Stream& stream) override {
    RefuseInCapture("launching a graph");
    RunOn(stream, [work = work_] {
      for (const Work& one : *work) one();
    });
  }

 private:
  std::shared_ptr<const std::vector<Work>> work_;
};

// Work that this thread queues on the stream goes into a list.
class CaptureScope {
 public:
  CaptureScope(Stream& stream, std::vector<Work>& work) {
    captured = &work;
    captured_stream = &stream.impl();
    capture_failed = false;
  }
  ~CaptureScope() {
    captured = nullptr;
    captured_stream = nullptr;
  }
};

}  // namespace

std::unique_ptr<Graph> Graph::Capture(Stream& stream,
                                      absl::FunctionRef<void()> queue) {
  RefuseInCapture("a capture");
  std::vector<Work> work;
  {
    const CaptureScope scope(stream, work);
    queue();
  }
  if (capture_failed) throw DeviceError("ending a capture: it was broken");
  return std::make_unique<EmulatedGraph>(std::move(work));
}

}  // namespace txl::cuda
