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
  Lane(int device, int64_t numbers)
      : device_index(device),
        device(MemoryKind::kDevice, numbers),
        host(MemoryKind::kPinned, numbers) {}

  const int device_index;
  const Array<M> device, host;  // [layers, rows, stride]
  Stream bus;
  Event packed;    // out of the slot
  Event copied;    // between host and device, either way
  Event unpacked;  // into the slot
  std::atomic<bool> is_busy = false;
  uint64_t number = 0;  // in the order in which lanes are taken
  // Either a state that leaves, while it was not fetched ...
  std::weak_ptr<Outgoing> outgoing;
  // ... or one that arrives, until it is in its slot.
  std::shared_ptr<Incoming> incoming;
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
    UseDevice(lane->device_index);
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

// A state that arrives. Bring moves its image into its lane: by whoever is
// asked to, or whoever uses the slot.
template <typename M>
struct StateLanes<M>::Incoming {
  int32_t slot = -1;
  int64_t first = 0, last = 0;  // positions of its rows, if they fit
  int64_t rows = 0;             // that its position should have
  std::function<void()> entered;
  StateIdentity identity;
  CudaShape shape;
  std::mutex lock;
  std::shared_ptr<Lane> lane;  // these two until it was brought
  std::shared_ptr<const StateImage> image;
  absl::Status outcome;

  absl::Status Bring() {
    const std::lock_guard<std::mutex> guard(lock);
    if (image == nullptr) return outcome;
    const auto from = std::move(image);
    const auto to = std::move(lane);
    outcome = absl::InternalError("the state did not arrive");
    outcome = BringFrom(*from, *to);
    return outcome;
  }

 private:
  absl::Status BringFrom(const StateImage& from, Lane& to) const {
    TXL_RETURN_IF_ERROR(CheckStateImage(from, identity));
    if (from.position < 0 || from.rows != rows) {
      return absl::InvalidArgumentError(absl::StrCat(
          "state image: ", from.rows, " rows at position ", from.position));
    }
    UseDevice(to.device_index);
    to.copied.Wait();  // the host's array is written below
    Spread(from, to.host.data());
    to.bus.WaitFor(to.unpacked);  // the device's is still read
    to.bus.Copy(
        to.device.data(), to.host.data(),
        static_cast<size_t>(shape.layers * rows * shape.stride) * sizeof(M));
    to.bus.Record(to.copied);
    to.copied.Wait();
    return absl::OkStatus();
  }

  // Copies an image's rows, [layers, rows, d], to [layers, rows, stride].
  void Spread(const StateImage& from, M* to) const {
    const size_t row_bytes = shape.width * sizeof(M);
    const uint8_t* row = from.data.data();
    for (int64_t r = 0; r < shape.layers * rows; ++r) {
      std::memcpy(to, row, row_bytes);
      std::fill(to + shape.width, to + shape.stride, M{});
      row += row_bytes;
      to += shape.stride;
    }
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
class StateLanes<M>::Arrival final : public StateArrival {
 public:
  explicit Arrival(std::shared_ptr<Incoming> incoming)
      : incoming_(std::move(incoming)) {}
  absl::Status Bring() override { return incoming_->Bring(); }

 private:
  const std::shared_ptr<Incoming> incoming_;
};

template <typename M>
StateLanes<M>::StateLanes(CudaArena<M>& arena, const StateIdentity& identity,
                          int device, int lanes, Stream& stream)
    : arena_(arena), identity_(identity), stream_(stream) {
  const int64_t numbers =
      StateLaneBytes(arena.ring(), arena.shape(), sizeof(M)) /
      static_cast<int64_t>(sizeof(M));
  for (int i = 0; i < lanes; ++i) {
    lanes_.push_back(std::make_shared<Lane>(device, numbers));
  }
}

// A lane and what arrives in it have each other.
template <typename M>
StateLanes<M>::~StateLanes() {
  for (const std::shared_ptr<Lane>& lane : lanes_) lane->incoming.reset();
}

template <typename M>
int64_t StateLanes<M>::RowsAt(int64_t position) const {
  return arena_.ring().RowsBefore(position);
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
  if (lane->incoming != nullptr) Settle(lane->incoming->slot);
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
  lane->bus.WaitFor(lane->packed);
  const CudaShape& shape = arena_.shape();
  lane->bus.Copy(
      lane->host.data(), lane->device.data(),
      static_cast<size_t>(shape.layers * outgoing->image.rows * shape.stride) *
          sizeof(M));
  lane->bus.Record(lane->copied);
  return std::make_unique<Transfer>(std::move(outgoing));
}

template <typename M>
std::unique_ptr<StateArrival> StateLanes<M>::Import(
    int32_t slot, std::shared_ptr<const StateImage> image,
    std::function<void()> entered) {
  Settle(slot);
  const std::shared_ptr<Lane>& lane = FreeLane();
  auto incoming = std::make_shared<Incoming>();
  incoming->slot = slot;
  incoming->rows = RowsAt(image->position);
  incoming->first = image->position - incoming->rows;
  incoming->last = image->position;
  incoming->entered = std::move(entered);
  incoming->identity = identity_;
  incoming->shape = arena_.shape();
  incoming->lane = lane;
  incoming->image = std::move(image);
  lane->incoming = incoming;
  return std::make_unique<Arrival>(std::move(incoming));
}

template <typename M>
void StateLanes<M>::Settle(int32_t slot) {
  for (const std::shared_ptr<Lane>& lane : lanes_) {
    if (lane->incoming == nullptr || lane->incoming->slot != slot) continue;
    const std::shared_ptr<Incoming> incoming = std::move(lane->incoming);
    if (incoming->Bring().ok()) {
      arena_.Unpack(slot, incoming->first, incoming->last, lane->device.data());
      stream_.Record(lane->unpacked);
      incoming->entered();
    }
    lane->is_busy = false;
  }
}

template class StateLanes<float>;
template class StateLanes<Bf16>;
template class StateLanes<F16>;

}  // namespace txl::cuda
