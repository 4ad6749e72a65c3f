#pragma once

// What travels to the device with every step, in one piece.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "model/cuda/device/runtime.h"
#include "model/cuda/kernels/rows.h"
#include "model/cuda/kernels/sampling.h"

namespace txl::cuda {

// Arrays of the rows of a step, or of those that are wanted of it.
enum class InputColumn {
  kSlot,
  kToken,
  kTicks,
  kWanted,  // indices of rows
  // Only of steps that sample (kernels/step_tokens.h, kernels/sampling.h).
  kFollowsSampled,
  kTarget,
  kTopCount,
  kNamed,  // kMaxNamedIds columns
};
inline constexpr int kPlainColumns = 4;
inline constexpr int kSamplingColumns = 7 + kMaxNamedIds;

// Inputs of at most max_rows rows. The host has `buffers` of them, so that it
// can write one while another is on its way. Thread-compatible. A buffer is
// written while no copy of it is queued.
class StepInput {
 public:
  StepInput(int64_t max_rows, int columns, int buffers)
      : max_rows_(max_rows),
        columns_(columns),
        device_(MemoryKind::kDevice, BytesOf(columns)) {
    for (int i = 0; i < buffers; ++i) {
      hosts_.emplace_back(MemoryKind::kPinned, BytesOf(columns));
    }
  }

  // The host's arrays of a buffer.
  int64_t* positions(int buffer) { return Positions(hosts_[buffer]); }
  int32_t* column(InputColumn column, int buffer) {
    return Numbers(hosts_[buffer], column);
  }

  // All of a buffer; the named ids only `with_named`.
  void QueueCopy(int buffer, bool with_named, Stream& stream) {
    const int named = static_cast<int>(InputColumn::kNamed);
    stream.Copy(device_.data(), hosts_[buffer].data(),
                static_cast<size_t>(BytesOf(
                    with_named ? columns_ : std::min(columns_, named))));
  }

  // The device's arrays.
  int64_t max_rows() const { return max_rows_; }
  StepRows Rows(int count) const {
    return {count, device_column(InputColumn::kSlot), Positions(device_)};
  }
  const int32_t* device_column(InputColumn column) const {
    return Numbers(device_, column);
  }

 private:
  int64_t BytesOf(int columns) const {
    return static_cast<int64_t>(sizeof(int64_t) + columns * sizeof(int32_t)) *
           max_rows_;
  }
  static int64_t* Positions(const Array<uint8_t>& array) {
    return reinterpret_cast<int64_t*>(array.data());
  }
  int32_t* Numbers(const Array<uint8_t>& array, InputColumn column) const {
    return reinterpret_cast<int32_t*>(Positions(array) + max_rows_) +
           static_cast<int64_t>(column) * max_rows_;
  }

  const int64_t max_rows_;
  const int columns_;
  Array<uint8_t> device_;
  std::vector<Array<uint8_t>> hosts_;
};

}  // namespace txl::cuda
