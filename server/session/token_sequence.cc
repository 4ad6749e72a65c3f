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

std::vector<int32_t> TokenSlice::Part(int64_t from, int64_t count) const {
  constexpr int64_t kPieceTokens = TokenSequence::kPieceTokens;
  std::vector<int32_t> ids;
  ids.reserve(static_cast<size_t>(count));
  for (int64_t at = first_ + from; at < first_ + from + count;) {
    const int64_t begin = at % kPieceTokens;
    const int64_t left = count - static_cast<int64_t>(ids.size());
    const int64_t end = std::min(begin + left, kPieceTokens);
    const int32_t* piece = pieces_[at / kPieceTokens].get();
    ids.insert(ids.end(), piece + begin, piece + end);
    at += end - begin;
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

int64_t TokenSequence::BytesOfPiece() { return PieceBytes(kPieceTokens); }

TokenSequence TokenSequence::First(int64_t size) const {
  TokenSequence first;
  const int64_t full = size / kPieceTokens;
  first.pieces_.assign(pieces_.begin(), pieces_.begin() + full);
  first.size_ = full * kPieceTokens;
  // A piece that is not full may still be written to, by one sequence only.
  const int64_t rest = size - first.size_;
  if (rest > 0) first.Append({pieces_[full].get(), static_cast<size_t>(rest)});
  return first;
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
