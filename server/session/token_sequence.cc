#include "server/session/token_sequence.h"

#include <algorithm>
#include <bit>

namespace txl {
namespace {

constexpr int64_t kSmallestPieceTokens = 16;
// The allocator's and the reference count's share.
constexpr int64_t kPieceOverheadBytes = 32;

// Room of a piece that holds so many ids, > 0: it doubles until it is whole.
int64_t PieceRoom(int64_t tokens) {
  return static_cast<int64_t>(std::bit_ceil(
      static_cast<uint64_t>(std::max(tokens, kSmallestPieceTokens))));
}

int64_t PieceBytes(int64_t tokens) {
  return PieceRoom(tokens) * static_cast<int64_t>(sizeof(int32_t)) +
         kPieceOverheadBytes;
}

}  // namespace

std::vector<int32_t> TokenSlice::Copy() const {
  std::vector<int32_t> ids;
  ids.reserve(static_cast<size_t>(size_));
  int64_t begin = first_;
  for (const std::shared_ptr<const int32_t[]>& piece : pieces_) {
    const int64_t left = size_ - static_cast<int64_t>(ids.size());
    const int64_t end =
        std::min(begin + left, int64_t{TokenSequence::kPieceTokens});
    ids.insert(ids.end(), piece.get() + begin, piece.get() + end);
    begin = 0;
  }
  return ids;
}

int64_t TokenSequence::BytesFor(int64_t tokens) {
  const int64_t full = tokens / kPieceTokens;
  const int64_t rest = tokens % kPieceTokens;
  const int64_t pieces = full + (rest > 0 ? 1 : 0);
  if (pieces == 0) return 0;
  const int64_t table =
      static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(pieces))) *
      static_cast<int64_t>(sizeof(Piece));
  return full * PieceBytes(kPieceTokens) + (rest > 0 ? PieceBytes(rest) : 0) +
         table;
}

void TokenSequence::Append(absl::Span<const int32_t> ids) {
  while (!ids.empty()) {
    const int64_t held = size_ % kPieceTokens;
    const int64_t count =
        std::min(static_cast<int64_t>(ids.size()), kPieceTokens - held);
    GrowLastPiece(held, held + count);
    std::copy_n(ids.begin(), count, pieces_.back().get() + held);
    size_ += count;
    ids.remove_prefix(static_cast<size_t>(count));
  }
}

void TokenSequence::GrowLastPiece(int64_t held, int64_t wanted) {
  if (held > 0 && PieceRoom(held) >= wanted) return;
  // A reader may hold the old piece, so it is copied, not moved.
  Piece piece = std::make_shared_for_overwrite<int32_t[]>(
      static_cast<size_t>(PieceRoom(wanted)));
  if (held == 0) {
    pieces_.push_back(std::move(piece));
    return;
  }
  std::copy_n(pieces_.back().get(), held, piece.get());
  pieces_.back() = std::move(piece);
}

TokenSlice TokenSequence::Slice(int64_t from, int64_t count) const {
  TokenSlice slice;
  if (from >= size_ || count == 0) return slice;
  slice.size_ = std::min(count, size_ - from);
  slice.first_ = from % kPieceTokens;
  const int64_t first = from / kPieceTokens;
  const int64_t last = (from + slice.size_ - 1) / kPieceTokens;
  slice.pieces_.assign(pieces_.begin() + first, pieces_.begin() + last + 1);
  return slice;
}

std::vector<int32_t> TokenSequence::Last(int64_t count) const {
  const int64_t from = std::max<int64_t>(size_ - count, 0);
  return Slice(from, size_ - from).Copy();
}

}  // namespace txl
