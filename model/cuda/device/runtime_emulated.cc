#include <chrono>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "model/cuda/device/launch.h"
#include "model/cuda/device/runtime.h"

namespace txl::cuda {

using Clock = std::chrono::steady_clock;

DeviceOutOfMemory::DeviceOutOfMemory(size_t bytes)
    : message_(absl::StrCat("no room for ", bytes, " bytes")) {}

int DeviceCount() { return 1; }

DeviceFacts CurrentDevice() {
  DeviceFacts facts;
  facts.name = "emulated";
  facts.processors = 4;
  facts.total_bytes = size_t{1} << 30;
  facts.free_bytes = facts.total_bytes;
  facts.shared_bytes = 227 << 10;
  return facts;
}

void UseDevice(int index) {
  if (index != 0) throw DeviceError(absl::StrCat("no device ", index));
}

Memory::Memory(MemoryKind kind, size_t bytes) : kind_(kind), bytes_(bytes) {
  if (bytes == 0) return;
  if (bytes > CurrentDevice().total_bytes) throw DeviceOutOfMemory(bytes);
  // malloc aligns to 16 bytes, which is what kernels may count on.
  data_ = std::malloc(bytes);
  if (data_ == nullptr) throw DeviceOutOfMemory(bytes);
  std::memset(data_, 0xff, bytes);  // what nobody wrote is NaN
}

Memory::~Memory() { std::free(data_); }

struct Stream::Impl {
  std::vector<std::function<void()>>* captured = nullptr;
};

void RunOn(Stream& stream, std::function<void()> work) {
  if (stream.impl().captured != nullptr) {
    stream.impl().captured->push_back(std::move(work));
  } else {
    work();
  }
}

Stream::Stream() : impl_(std::make_unique<Impl>()) {}
Stream::~Stream() = default;

void Stream::Copy(void* to, const void* from, size_t bytes) {
  RunOn(*this, [=] { std::memmove(to, from, bytes); });
}

void Stream::CopyPieces(void* to, const void* from, const Pieces& pieces) {
  RunOn(*this, [=] {
    for (size_t row = 0; row < pieces.rows; ++row) {
      std::memcpy(static_cast<char*>(to) + row * pieces.to_pitch,
                  static_cast<const char*>(from) + row * pieces.from_pitch,
                  pieces.bytes);
    }
  });
}

void Stream::Fill(void* to, int byte, size_t bytes) {
  RunOn(*this, [=] { std::memset(to, byte, bytes); });
}

struct Event::Impl {
  Clock::time_point when;
};

void Stream::Record(Event& event) {
  Event::Impl* at = &event.impl();
  RunOn(*this, [at] { at->when = Clock::now(); });
}

void Stream::WaitFor(const Event&) {}
void Stream::Wait() {
  if (impl_->captured != nullptr) {
    throw DeviceError("waiting inside of a capture");
  }
}

Event::Event() : impl_(std::make_unique<Impl>()) {}
Event::~Event() = default;
void Event::Wait() const {}
double Event::SecondsSince(const Event& earlier) const {
  return std::chrono::duration<double>(impl_->when - earlier.impl_->when)
      .count();
}

namespace {

class EmulatedGraph final : public Graph {
 public:
  void Launch(Stream& stream) override {
    for (const std::function<void()>& work : work_) RunOn(stream, work);
  }
  std::vector<std::function<void()>> work_;
};

}  // namespace

std::unique_ptr<Graph> Graph::Capture(Stream& stream,
                                      absl::FunctionRef<void()> queue) {
  auto graph = std::make_unique<EmulatedGraph>();
  stream.impl().captured = &graph->work_;
  try {
    queue();
  } catch (...) {
    stream.impl().captured = nullptr;
    throw;
  }
  stream.impl().captured = nullptr;
  return graph;
}

}  // namespace txl::cuda
