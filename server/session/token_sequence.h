#pragma once

// The token ids of a session: a list that grows at its end, kept in pieces.
// Growing copies less than one piece, a reader takes hold of the pieces that it
// wants instead of copying them under somebody's lock, and sequences that begin
// alike share the full pieces of their beginning.

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"

namespace txl {

// Some ids of a sequence as they were at one moment: what the sequence becomes
// later does not show. May be read while the sequence grows on another thread,
// if taking the slice happened before that.
class TokenSlice {
 public:
  TokenSlice() = default;

  int64_t size() const { return size_; }
  std::vector<int32_t> Copy() const { return Part(0, size_); }
  // Ids from..from + count - 1 of the slice. REQUIRES: it has them.
  std::vector<int32_t> Part(int64_t from, int64_t count) const;

 private:
  friend class TokenSequence;
  // `first_`: where the slice begins in the first piece.
  std::vector<std::shared_ptr<const int32_t[]>> pieces_;
  int64_t first_ = 0;
  int64_t size_ = 0;
};

// Move-only; thread-compatible.
class TokenSequence {
 public:
  static constexpr int64_t kPieceTokens = 4096;

  // Host bytes that a sequence of so many ids takes, never less for more ids.
  static int64_t BytesFor(int64_t tokens);
  // Host bytes of a full piece, as in BytesFor.
  static int64_t BytesOfPiece();

  TokenSequence() = default;
  TokenSequence(TokenSequence&&) = default;
  TokenSequence& operator=(TokenSequence&&) = default;

  int64_t size() const { return size_; }
  // REQUIRES: 0 <= index < size().
  int32_t operator[](int64_t index) const {
    return pieces_[index / kPieceTokens][index % kPieceTokens];
  }
  // REQUIRES: size() > 0.
  int32_t back() const { return (*this)[size_ - 1]; }

  void Append(absl::Span<const int32_t> ids);
  // Ids from..from + count - 1, as far as there are any. Takes time for every
  // piece, none for its ids. REQUIRES: both >= 0.
  TokenSlice Slice(int64_t from, int64_t count) const;
  // The first `size` ids as a sequence of its own, which shares the full pieces
  // among them, size / kPieceTokens, and copies the rest. REQUIRES: 0 <= size
  // <= size().
  TokenSequence First(int64_t size) const;
  // The last `count` ids, or all of them.
  std::vector<int32_t> Last(int64_t count) const;

 private:
  using Piece = std::shared_ptr<int32_t[]>;

  // Makes the last piece large enough for so many ids.
  void GrowLastPiece(int64_t held, int64_t wanted);

  // All but the last are full; a full one never changes.
  std::vector<Piece> pieces_;
  int64_t size_ = 0;
};

}  // namespace txl
