#pragma once

// Segment memories on their way between slots and the host. Each takes a lane:
// room for one state on the device and, pinned, on the host.
//
//   Export: slot -> device (compute stream) -> host (the lane's stream)
//   Import: host -> device (the lane's stream) -> slot (compute stream)
//
// The compute stream only ever copies within the device, and an import's last
// copy is queued when its slot is next used: steps of other slots go on while a
// state crosses the bus, and no later step can overtake an export. What takes
// the host's time, checking an image and copying it to where the bus can reach
// it, is done by the thread that takes a transfer or brings an arrival.

#include <atomic>
#include <cstdint>
#include <functional>
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

// All calls from one thread; transfers and arrivals belong to any. `arena` and
// `stream`, the arena's, outlive it; transfers and arrivals may outlive it.
// Slots and positions are checked by the caller. Throws what device/runtime.h
// throws.
template <typename M>
class StateLanes {
 public:
  // On the device `device`, which is in use. With more states than `lanes` on
  // their way, the next one first waits for the oldest. REQUIRES: lanes >= 1.
  StateLanes(CudaArena<M>& arena, const StateIdentity& identity, int device,
             int lanes, Stream& stream);
  ~StateLanes();

  // Takes the rows of the last min(M, position - first_position) positions
  // before `position`, once all that was queued on `stream` is done.
  std::unique_ptr<StateTransfer> Export(int32_t slot, int64_t position);
  // SamplingStep::Import. `entered` is called by Settle when the state goes
  // into the slot, not for one that is refused.
  std::unique_ptr<StateArrival> Import(
      int32_t slot, std::shared_ptr<const StateImage> image,
      std::function<void()> entered = [] {});

  // Before anything is queued on `stream` that reads or writes the slot. Waits
  // for a state that was not brought yet.
  void Settle(int32_t slot);

 private:
  struct Lane;
  struct Outgoing;
  struct Incoming;
  class Transfer;
  class Arrival;

  // A lane that is not busy.
  const std::shared_ptr<Lane>& FreeLane();
  int64_t RowsAt(int64_t position) const;

  CudaArena<M>& arena_;
  const StateIdentity identity_;
  Stream& stream_;
  std::vector<std::shared_ptr<Lane>> lanes_;
  uint64_t used_ = 0;  // lanes that were ever taken
};

}  // namespace txl::cuda
