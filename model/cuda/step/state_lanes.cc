#include "model/cuda/step/state_lanes.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"

namespace txl::cuda {

int64_t StateLaneBytes(const RingGeometry& ring, const CudaShape& shape,
                       int64_t number_bytes) {
  return shape.layers * ring.mem_len * shape.stride * number_bytes;
}

template <typename M>
struct StateLanes<M>::Lane {
  explicit Lane(int64_t numbers)
      : device(MemoryKind::kDevice, numbers),
        host(MemoryKind::kPinned, numbers) {}

  const Array<M> device, host;  // [layers, rows, stride]
  Event packed;                 // out of the slot
  Event copied;                 // between host and device, either way
  Event unpacked;               // into the slot
  std::atomic<bool> is_busy = false;
  uint64_t number = 0;  // in the order in which lanes are taken
  // Either a state that leaves, while it was not fetched ...
  std::weak_ptr<Outgoing> outgoing;
  // ... or one that arrives: where to.
  int32_t slot = -1;
  int64_t first = 0, last = 0;
};

// A state that leaves. Fetch moves it from its lane into `image`: by whoever
// wants it, or whoever needs the lane.
template <typename M>
struct StateLanes<M>::Outgoing {
  std::mutex lock;
  std::shared_ptr<Lane> lane;  // until it is fetched or forgotten
  StateImage image;
  CudaShape shape;

  void Fetch() {
    const std::lock_guard<std::mutex> guard(lock);
    if (lane == nullptr) return;
    lane->copied.Wait();
    const size_t row_bytes = shape.width * sizeof(M);
    image.data.resize(shape.layers * image.rows * row_bytes);
    for (int64_t r = 0; r < shape.layers * image.rows; ++r) {
      std::memcpy(image.data.data() + r * row_bytes,
                  lane->host.data() + r * shape.stride, row_bytes);
    }
    Free();
  }
  void Forget() {
    const std::lock_guard<std::mutex> guard(lock);
    if (lane != nullptr) Free();
  }

 private:
  void Free() {
    lane->is_busy = false;
    lane.reset();
  }
};

template <typename M>
class StateLanes<M>::Transfer final : public StateTransfer {
 public:
  explicit Transfer(std::shared_ptr<Outgoing> outgoing)
      : outgoing_(std::move(outgoing)) {}
  ~Transfer() override { outgoing_->Forget(); }

  StateImage Take() override {
    outgoing_->Fetch();
    outgoing_->image.Seal();
    return std::move(outgoing_->image);
  }

 private:
  const std::shared_ptr<Outgoing> outgoing_;
};

template <typename M>
StateLanes<M>::StateLanes(CudaArena<M>& arena, const StateIdentity& identity,
                          int lanes, Stream& stream)
    : arena_(arena), identity_(identity), stream_(stream) {
  const int64_t numbers =
      StateLaneBytes(arena.ring(), arena.shape(), sizeof(M)) /
      static_cast<int64_t>(sizeof(M));
  for (int i = 0; i < lanes; ++i) {
    lanes_.push_back(std::make_shared<Lane>(numbers));
  }
}

// Who takes a transfer later finds its copy done.
template <typename M>
StateLanes<M>::~StateLanes() = default;

template <typename M>
int64_t StateLanes<M>::RowsAt(int64_t position) const {
  return std::min(arena_.ring().mem_len,
                  position - arena_.ring().first_position());
}

template <typename M>
const std::shared_ptr<typename StateLanes<M>::Lane>& StateLanes<M>::FreeLane() {
  const auto free =
      std::find_if(lanes_.begin(), lanes_.end(),
                   [](const auto& lane) { return !lane->is_busy; });
  const auto& lane = free != lanes_.end()
                         ? *free
                         : *std::min_element(lanes_.begin(), lanes_.end(),
                                             [](const auto& a, const auto& b) {
                                               return a->number < b->number;
                                             });
  if (lane->is_busy && lane->slot >= 0) Settle(lane->slot);
  if (lane->is_busy) {
    // Gone already where somebody forgets it right now.
    if (const auto outgoing = lane->outgoing.lock()) outgoing->Fetch();
  }
  lane->is_busy = true;
  lane->number = ++used_;
  lane->outgoing.reset();
  return lane;
}

template <typename M>
std::unique_ptr<StateTransfer> StateLanes<M>::Export(int32_t slot,
                                                     int64_t position) {
  Settle(slot);
  const std::shared_ptr<Lane>& lane = FreeLane();
  auto outgoing = std::make_shared<Outgoing>();
  outgoing->lane = lane;
  outgoing->shape = arena_.shape();
  outgoing->image.identity = identity_;
  outgoing->image.position = position;
  outgoing->image.rows = RowsAt(position);
  lane->outgoing = outgoing;
  // The copy of a state that was forgotten on its way may still read the lane;
  // nobody looks at what it gets, and the one below comes after it.
  arena_.Pack(slot, position - outgoing->image.rows, position,
              lane->device.data());
  stream_.Record(lane->packed);
  out_.WaitFor(lane->packed);
  const CudaShape& shape = arena_.shape();
  out_.Copy(
      lane->host.data(), lane->device.data(),
      static_cast<size_t>(shape.layers * outgoing->image.rows * shape.stride) *
          sizeof(M));
  out_.Record(lane->copied);
  return std::make_unique<Transfer>(std::move(outgoing));
}

template <typename M>
void StateLanes<M>::Spread(const StateImage& image, M* to) const {
  const CudaShape& shape = arena_.shape();
  const size_t row_bytes = shape.width * sizeof(M);
  const uint8_t* from = image.data.data();
  for (int64_t r = 0; r < shape.layers * image.rows; ++r) {
    std::memcpy(to, from, row_bytes);
    std::fill(to + shape.width, to + shape.stride, M{});
    from += row_bytes;
    to += shape.stride;
  }
}

template <typename M>
absl::Status StateLanes<M>::Import(int32_t slot, const StateImage& image) {
  TXL_RETURN_IF_ERROR(CheckStateImage(image, identity_));
  if (image.position < 0 || image.rows != RowsAt(image.position)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "state image: ", image.rows, " rows at position ", image.position));
  }
  Settle(slot);
  const std::shared_ptr<Lane>& lane = FreeLane();
  lane->copied.Wait();  // the host's array is written below
  Spread(image, lane->host.data());
  in_.WaitFor(lane->unpacked);  // the device's is still read
  const CudaShape& shape = arena_.shape();
  in_.Copy(lane->device.data(), lane->host.data(),
           static_cast<size_t>(shape.layers * image.rows * shape.stride) *
               sizeof(M));
  in_.Record(lane->copied);
  lane->slot = slot;
  lane->first = image.position - image.rows;
  lane->last = image.position;
  return absl::OkStatus();
}

template <typename M>
void StateLanes<M>::Settle(int32_t slot) {
  for (const std::shared_ptr<Lane>& lane : lanes_) {
    if (lane->slot != slot) continue;
    stream_.WaitFor(lane->copied);
    arena_.Unpack(slot, lane->first, lane->last, lane->device.data());
    stream_.Record(lane->unpacked);
    lane->slot = -1;
    lane->is_busy = false;
  }
}

template class StateLanes<float>;
template class StateLanes<Bf16>;
template class StateLanes<F16>;

}  // namespace txl::cuda
