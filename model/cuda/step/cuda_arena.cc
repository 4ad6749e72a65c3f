#include "model/cuda/step/cuda_arena.h"

#include <algorithm>
#include <numeric>

namespace txl::cuda {

RingGeometry CudaRing(RingGeometry ring) {
  const int64_t tiles = (ring.capacity() + kRingTile - 1) / kRingTile;
  ring.spare = tiles * kRingTile - ring.mem_len;
  return ring;
}

int64_t CudaSlotBytes(const RingGeometry& ring, const CudaShape& shape,
                      int64_t number_bytes) {
  return shape.layers * ring.capacity() * shape.stride * number_bytes;
}

template <typename M>
CudaArena<M>::CudaArena(const RingGeometry& ring, const CudaShape& shape,
                        int64_t slots, Stream& stream)
    : ring_(ring),
      shape_(shape),
      stream_(stream),
      rows_(MemoryKind::kDevice, slots * layers_numbers()),
      start_positions_(MemoryKind::kDevice, ring.mem_len),
      start_slots_(MemoryKind::kDevice, ring.mem_len) {
  stream_.Fill(rows_.data(), 0, static_cast<size_t>(rows_.bytes()));
  std::vector<int64_t> before(ring.mem_len);
  std::iota(before.begin(), before.end(), -ring.mem_len);
  stream_.Copy(start_positions_.data(), before.data(),
               static_cast<size_t>(start_positions_.bytes()));
  stream_.Fill(start_slots_.data(), 0,
               static_cast<size_t>(start_slots_.bytes()));
  stream_.Wait();
}

template <typename M>
Rings<M> CudaArena<M>::Layer(int layer) const {
  Rings<M> rings;
  rings.rows = rows_.data() + layer * layer_numbers();
  rings.slot_stride = layers_numbers();
  rings.capacity = ring_.capacity();
  rings.stride = shape_.stride;
  rings.window = ring_.window;
  rings.first_position = ring_.first_position();
  return rings;
}

template <typename M>
void CudaArena<M>::Clear(int32_t slot) {
  stream_.Fill(Slot(slot), 0, static_cast<size_t>(bytes_per_slot()));
}

template <typename M>
void CudaArena<M>::FillStart(int32_t slot, int layer, const float* row) {
  if (ring_.mem_len == 0) return;
  Rings<M> rings = Layer(layer);
  rings.rows += slot * rings.slot_stride;
  const StepRows before = {static_cast<int>(ring_.mem_len), start_slots_.data(),
                           start_positions_.data()};
  LaunchStoreRows(stream_, StoreArgs<M>{before, row, 0, rings});
}

template <typename M>
void CudaArena<M>::Copy(int32_t from, int32_t to) {
  if (from == to) return;
  stream_.Copy(Slot(to), Slot(from), static_cast<size_t>(bytes_per_slot()));
}

template <typename M>
std::vector<typename CudaArena<M>::Run> CudaArena<M>::Runs(int64_t first,
                                                           int64_t last) const {
  std::vector<Run> runs;
  while (first < last) {
    const int64_t index = ring_.IndexOf(first);
    const int64_t count = std::min(last - first, ring_.capacity() - index);
    runs.push_back({index, count});
    first += count;
  }
  return runs;
}

// A run is one piece per layer.
template <typename M>
void CudaArena<M>::Pack(int32_t slot, int64_t first, int64_t last, M* to) {
  const size_t row_bytes = shape_.stride * sizeof(M);
  Stream::Pieces pieces;
  pieces.rows = static_cast<size_t>(shape_.layers);
  pieces.to_pitch = static_cast<size_t>(last - first) * row_bytes;
  pieces.from_pitch = static_cast<size_t>(ring_.capacity()) * row_bytes;
  for (const Run& run : Runs(first, last)) {
    pieces.bytes = static_cast<size_t>(run.count) * row_bytes;
    stream_.CopyPieces(to, Slot(slot) + run.index * shape_.stride, pieces);
    to += run.count * shape_.stride;
  }
}

template <typename M>
void CudaArena<M>::Unpack(int32_t slot, int64_t first, int64_t last,
                          const M* from) {
  const size_t row_bytes = shape_.stride * sizeof(M);
  Stream::Pieces pieces;
  pieces.rows = static_cast<size_t>(shape_.layers);
  pieces.to_pitch = static_cast<size_t>(ring_.capacity()) * row_bytes;
  pieces.from_pitch = static_cast<size_t>(last - first) * row_bytes;
  for (const Run& run : Runs(first, last)) {
    pieces.bytes = static_cast<size_t>(run.count) * row_bytes;
    stream_.CopyPieces(Slot(slot) + run.index * shape_.stride, from, pieces);
    from += run.count * shape_.stride;
  }
}

template class CudaArena<float>;
template class CudaArena<Bf16>;
template class CudaArena<F16>;

}  // namespace txl::cuda
