#pragma once

// What travels to the device with every step, in one piece.

#include <cstdint>

#include "model/cuda/device/runtime.h"
#include "model/cuda/kernels/rows.h"

namespace txl::cuda {

// Of at most max_rows rows. Thread-compatible. The host's arrays may be written
// while no QueueCopy runs.
class StepInput {
 public:
  explicit StepInput(int64_t max_rows)
      : max_rows_(max_rows),
        host_(MemoryKind::kPinned, kBytes * max_rows),
        device_(MemoryKind::kDevice, kBytes * max_rows) {}

  // On the host.
  int64_t* positions() { return Positions(host_); }
  int32_t* slots() { return Numbers(host_, 0); }
  int32_t* tokens() { return Numbers(host_, 1); }
  // Rows whose distributions are wanted, indices into the others.
  int32_t* wanted() { return Numbers(host_, 2); }

  // All of it.
  void QueueCopy(Stream& stream) {
    stream.Copy(device_.data(), host_.data(),
                static_cast<size_t>(host_.bytes()));
  }

  // On the device.
  StepRows Rows(int count) {
    return {count, Numbers(device_, 0), Positions(device_)};
  }
  const int32_t* device_tokens() { return Numbers(device_, 1); }
  const int32_t* device_wanted() { return Numbers(device_, 2); }

 private:
  static constexpr int64_t kBytes = sizeof(int64_t) + 3 * sizeof(int32_t);

  int64_t* Positions(Array<uint8_t>& array) {
    return reinterpret_cast<int64_t*>(array.data());
  }
  // The array behind the positions with this index.
  int32_t* Numbers(Array<uint8_t>& array, int64_t index) {
    return reinterpret_cast<int32_t*>(Positions(array) + max_rows_) +
           index * max_rows_;
  }

  const int64_t max_rows_;
  Array<uint8_t> host_, device_;
};

}  // namespace txl::cuda
