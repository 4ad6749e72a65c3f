#pragma once

// Segment memories on their way between slots and the host. Each takes a lane:
// room for one state on the device and, pinned, on the host.
//
//   Export: slot -> device (compute stream) -> host (a stream of its own)
//   Import: host -> device (a stream of its own) -> slot (compute stream)
//
// The compute stream only ever copies within the device, and an import's last
// copy is queued when its slot is next used: steps of other slots go on while a
// state crosses the bus, and no later step can overtake an export.

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "model/cuda/device/runtime.h"
#include "model/cuda/step/cuda_arena.h"
#include "model/memory/state_image.h"
#include "model/step/sampling_step.h"

namespace txl::cuda {

// Bytes of one lane on the device, and as many on the host.
int64_t StateLaneBytes(const RingGeometry& ring, const CudaShape& shape,
                       int64_t number_bytes);

// All calls from one thread; transfers are taken by any. `arena` and `stream`,
// the arena's, outlive it; transfers may outlive it. Slots and positions are
// checked by the caller. Throws what device/runtime.h throws.
template <typename M>
class StateLanes {
 public:
  // With more states than `lanes` on their way, the next one first waits for
  // the oldest. REQUIRES: lanes >= 1.
  StateLanes(CudaArena<M>& arena, const StateIdentity& identity, int lanes,
             Stream& stream);
  ~StateLanes();

  // Of rows of the last min(M, position - first_position) positions before
  // `position`, as the slot is once all that was queued on `stream` is done.
  std::unique_ptr<StateTransfer> Export(int32_t slot, int64_t position);
  // Errors as CheckStateImage, and InvalidArgument for another number of rows
  // than Export gives.
  absl::Status Import(int32_t slot, const StateImage& image);

  // Before anything is queued on `stream` that reads or writes the slot.
  void Settle(int32_t slot);

 private:
  struct Lane;
  struct Outgoing;
  class Transfer;

  // A lane that is not busy.
  const std::shared_ptr<Lane>& FreeLane();
  int64_t RowsAt(int64_t position) const;
  // Of an image's rows, [layers, rows, d], into [layers, rows, stride].
  void Spread(const StateImage& image, M* to) const;

  CudaArena<M>& arena_;
  const StateIdentity identity_;
  Stream& stream_;
  Stream out_, in_;
  std::vector<std::shared_ptr<Lane>> lanes_;
  uint64_t used_ = 0;  // lanes that were ever taken
};

}  // namespace txl::cuda
