#include "model/text/piece_index.h"

#include <algorithm>

namespace txl {
namespace {

// The byte at `depth`; an entry that ends there comes before all others.
int ByteAt(const std::string& text, size_t depth) {
  return depth < text.size() ? static_cast<unsigned char>(text[depth]) : -1;
}

}  // namespace

PieceIndex::PieceIndex(std::vector<std::pair<std::string, int32_t>> entries)
    : entries_(std::move(entries)) {
  std::sort(entries_.begin(), entries_.end());
  for (size_t byte = 0; byte < 256; ++byte) {
    by_first_byte_[byte + 1] =
        Narrow({0, entries_.size()}, 0, static_cast<char>(byte)).end;
  }
}

size_t PieceIndex::LongestPrefix(absl::string_view text) const {
  size_t longest = 0;
  VisitPrefixes(text, [&](size_t size, int32_t) { longest = size; });
  return longest;
}

PieceIndex::Range PieceIndex::Narrow(Range range, size_t depth,
                                     char byte) const {
  const int wanted = static_cast<unsigned char>(byte);
  const auto first = entries_.begin() + static_cast<ptrdiff_t>(range.begin);
  const auto last = entries_.begin() + static_cast<ptrdiff_t>(range.end);
  const auto begin = std::partition_point(first, last, [&](const auto& entry) {
    return ByteAt(entry.first, depth) < wanted;
  });
  const auto end = std::partition_point(begin, last, [&](const auto& entry) {
    return ByteAt(entry.first, depth) == wanted;
  });
  return {static_cast<size_t>(begin - entries_.begin()),
          static_cast<size_t>(end - entries_.begin())};
}

}  // namespace txl
