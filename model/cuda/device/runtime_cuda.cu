#include <cuda_runtime.h>

#include <cstdint>
#include <string>
#include <utility>

#include "model/cuda/device/launch.h"
#include "model/cuda/device/runtime.h"

namespace txl::cuda {

DeviceOutOfMemory::DeviceOutOfMemory(size_t bytes)
    : message_("the device has no room for " + std::to_string(bytes) +
               " bytes") {}

// The runtime keeps the last error of any call for cudaGetLastError, which
// tells of a launch: every other error is taken out of there.
void CheckCuda(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  cudaGetLastError();
  throw DeviceError(std::string(what) + ": " + cudaGetErrorString(result));
}

namespace {

// Where nothing can be done about an error; it may be an earlier call's.
void Ignore(cudaError_t result) {
  if (result != cudaSuccess) cudaGetLastError();
}

}  // namespace

void CheckShape(const LaunchShape& shape) {
  if (const char* error = ShapeError(shape)) {
    throw DeviceError(std::string("launching a kernel: ") + error);
  }
}

int DeviceCount() {
  int count = 0;
  const cudaError_t result = cudaGetDeviceCount(&count);
  Ignore(result);
  return result == cudaSuccess ? count : 0;
}

DeviceFacts CurrentDevice() {
  int index = 0;
  CheckCuda(cudaGetDevice(&index), "the device in use");
  cudaDeviceProp properties;
  CheckCuda(cudaGetDeviceProperties(&properties, index), "the device's limits");
  DeviceFacts facts;
  facts.name = properties.name;
  facts.capability = 10 * properties.major + properties.minor;
  facts.processors = properties.multiProcessorCount;
  facts.shared_bytes = properties.sharedMemPerBlockOptin;
  CheckCuda(cudaMemGetInfo(&facts.free_bytes, &facts.total_bytes),
            "the device's memory");
  return facts;
}

void UseDevice(int index) {
  CheckCuda(cudaSetDevice(index), "choosing the device");
}

Memory::Memory(MemoryKind kind, size_t bytes) : kind_(kind), bytes_(bytes) {
  if (bytes == 0) return;
  const cudaError_t result = kind == MemoryKind::kPinned
                                 ? cudaMallocHost(&data_, bytes)
                                 : cudaMalloc(&data_, bytes);
  if (result == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // it is not the next call's
    throw DeviceOutOfMemory(bytes);
  }
  CheckCuda(result, "taking memory");
}

// Work that failed shows up here too.
Memory::~Memory() {
  if (data_ == nullptr) return;
  Ignore(cudaDeviceSynchronize());
  Ignore(kind_ == MemoryKind::kPinned ? cudaFreeHost(data_) : cudaFree(data_));
}

struct Stream::Impl {
  cudaStream_t stream = nullptr;
  bool overlaps = false;      // the device can begin kernels early
  bool after_kernel = false;  // what was queued last is one
};

cudaStream_t NativeStream(Stream& stream) { return stream.impl().stream; }

bool OverlapsKernels(Stream& stream) { return stream.impl().overlaps; }

bool TakeMayBeginEarly(Stream& stream) {
  return std::exchange(stream.impl().after_kernel, stream.impl().overlaps);
}

Stream::Stream() : impl_(std::make_unique<Impl>()) {
  CheckCuda(cudaStreamCreateWithFlags(&impl_->stream, cudaStreamNonBlocking),
            "making a stream");
}

Stream::~Stream() {
  Ignore(cudaStreamSynchronize(impl_->stream));
  Ignore(cudaStreamDestroy(impl_->stream));
}

void Stream::Copy(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  impl_->after_kernel = false;
  CheckCuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, impl_->stream),
            "copying");
}

void Stream::CopyPieces(void* to, const void* from, const Pieces& pieces) {
  if (pieces.bytes == 0 || pieces.rows == 0) return;
  impl_->after_kernel = false;
  CheckCuda(cudaMemcpy2DAsync(to, pieces.to_pitch, from, pieces.from_pitch,
                              pieces.bytes, pieces.rows, cudaMemcpyDefault,
                              impl_->stream),
            "copying");
}

void Stream::OverlapKernels(bool overlaps) {
  constexpr int kFirstThatOverlaps = 90;
  impl_->overlaps =
      overlaps && CurrentDevice().capability >= kFirstThatOverlaps;
  impl_->after_kernel = false;
}

void Stream::Fill(void* to, int byte, size_t bytes) {
  if (bytes == 0) return;
  impl_->after_kernel = false;
  CheckCuda(cudaMemsetAsync(to, byte, bytes, impl_->stream), "filling");
}

struct Event::Impl {
  cudaEvent_t event = nullptr;
};

void Stream::Record(Event& event) {
  impl_->after_kernel = false;
  CheckCuda(cudaEventRecord(event.impl().event, impl_->stream),
            "recording an event");
}

void Stream::WaitFor(const Event& event) {
  impl_->after_kernel = false;
  CheckCuda(cudaStreamWaitEvent(impl_->stream, event.impl().event, 0),
            "waiting for an event");
}

void Stream::Wait() {
  CheckCuda(cudaStreamSynchronize(impl_->stream), "the device's work");
}

Event::Event() : impl_(std::make_unique<Impl>()) {
  CheckCuda(cudaEventCreate(&impl_->event), "making an event");
}

Event::~Event() { Ignore(cudaEventDestroy(impl_->event)); }

void Event::Wait() const {
  CheckCuda(cudaEventSynchronize(impl_->event), "the device's work");
}

double Event::SecondsSince(const Event& earlier) const {
  float milliseconds = 0;
  CheckCuda(
      cudaEventElapsedTime(&milliseconds, earlier.impl_->event, impl_->event),
      "timing");
  return 1e-3 * static_cast<double>(milliseconds);
}

namespace {

class CudaGraph final : public Graph {
 public:
  explicit CudaGraph(cudaGraphExec_t graph) : graph_(graph) {}
  ~CudaGraph() override { Ignore(cudaGraphExecDestroy(graph_)); }
  void Launch(Stream& stream) override {
    stream.impl().after_kernel = false;
    CheckCuda(cudaGraphLaunch(graph_, NativeStream(stream)),
              "launching a graph");
  }

 private:
  cudaGraphExec_t graph_;
};

}  // namespace

std::unique_ptr<Graph> Graph::Capture(Stream& stream,
                                      absl::FunctionRef<void()> queue) {
  cudaStream_t native = NativeStream(stream);
  CheckCuda(cudaStreamBeginCapture(native, cudaStreamCaptureModeThreadLocal),
            "beginning a capture");
  cudaGraph_t graph = nullptr;
  stream.impl().after_kernel = false;
  try {
    queue();
    stream.impl().after_kernel = false;
  } catch (...) {
    stream.impl().after_kernel = false;
    Ignore(cudaStreamEndCapture(native, &graph));
    if (graph != nullptr) Ignore(cudaGraphDestroy(graph));
    throw;
  }
  CheckCuda(cudaStreamEndCapture(native, &graph), "ending a capture");
  cudaGraphExec_t executable = nullptr;
  const cudaError_t result = cudaGraphInstantiate(&executable, graph, 0);
  Ignore(cudaGraphDestroy(graph));
  CheckCuda(result, "making a graph");
  return std::make_unique<CudaGraph>(executable);
}

}  // namespace txl::cuda
