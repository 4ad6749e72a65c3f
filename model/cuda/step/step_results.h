#pragma once

// What comes back from the device with every step that samples.

#include <cstdint>
#include <vector>

#include "model/cuda/device/runtime.h"
#include "model/cuda/kernels/sampling.h"

namespace txl::cuda {

// Numbers of one step, of the device or of one of the host's buffers. Arrays of
// max_rows unless they say otherwise.
class ResultArrays {
 public:
  ResultArrays(int32_t* numbers, int64_t max_rows, int64_t list_ends)
      : numbers_(numbers), max_rows_(max_rows), list_ends_(list_ends) {}

  int32_t* unknown() const { return numbers_; }  // of rows, not wanted ones
  int32_t* tokens() const { return numbers_ + max_rows_; }
  float* logprobs() const { return Floats(numbers_ + 2 * max_rows_); }
  SampleStatus* statuses() const {
    return reinterpret_cast<SampleStatus*>(numbers_ + 3 * max_rows_);
  }
  int32_t* list_ends() const { return numbers_ + 4 * max_rows_; }
  // [max_rows, kMaxReported]
  int32_t* top_ids() const { return numbers_ + plain_size(); }
  float* top_logprobs() const {
    return Floats(top_ids() + max_rows_ * kMaxReported);
  }

  // The arrays before top_ids, and all.
  int64_t plain_size() const { return 4 * max_rows_ + list_ends_; }
  int64_t size() const { return plain_size() + 2 * max_rows_ * kMaxReported; }

 private:
  static float* Floats(int32_t* numbers) {
    return reinterpret_cast<float*>(numbers);
  }

  int32_t* numbers_;
  int64_t max_rows_;
  int64_t list_ends_;
};

// Thread-compatible, and a buffer of the host may be read by another thread
// once its copy is done.
class StepResults {
 public:
  // `list_ends`: numbers of ClusterLists::end of a step.
  StepResults(int64_t max_rows, int64_t list_ends, int buffers)
      : max_rows_(max_rows),
        list_ends_(list_ends),
        device_(MemoryKind::kDevice,
                ResultArrays(nullptr, max_rows, list_ends).size()) {
    for (int i = 0; i < buffers; ++i) {
      hosts_.emplace_back(MemoryKind::kPinned, device_.size());
    }
  }

  ResultArrays device() const { return Of(device_); }
  ResultArrays host(int buffer) const { return Of(hosts_[buffer]); }

  // Copies to the host; the best and named words only `with_top`.
  void QueueCopy(int buffer, bool with_top, Stream& stream) {
    const ResultArrays arrays = device();
    const int64_t size = with_top ? arrays.size() : arrays.plain_size();
    stream.Copy(hosts_[buffer].data(), device_.data(),
                static_cast<size_t>(size) * sizeof(int32_t));
  }

 private:
  ResultArrays Of(const Array<int32_t>& array) const {
    return {array.data(), max_rows_, list_ends_};
  }

  const int64_t max_rows_;
  const int64_t list_ends_;
  Array<int32_t> device_;
  std::vector<Array<int32_t>> hosts_;
};

}  // namespace txl::cuda
