#pragma once

// Texts with ids, found at the start of a longer text.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace txl {

class PieceIndex {
 public:
  // Texts are not empty and distinct.
  explicit PieceIndex(std::vector<std::pair<std::string, int32_t>> entries);

  // Calls visit(size, id) for every entry that `text` starts with, shortest
  // first. Takes time for the longest one, not for all of `text`.
  template <typename Visitor>
  void VisitPrefixes(absl::string_view text, Visitor visit) const {
    if (text.empty()) return;
    const auto first = static_cast<unsigned char>(text[0]);
    Range range{by_first_byte_[first], by_first_byte_[first + 1]};
    for (size_t depth = 1; range.begin < range.end; ++depth) {
      const auto& [entry, id] = entries_[range.begin];
      if (entry.size() == depth) visit(depth, id);
      if (depth == text.size()) return;
      range = Narrow(range, depth, text[depth]);
    }
  }

  // Bytes of the longest entry that `text` starts with; 0: none.
  size_t LongestPrefix(absl::string_view text) const;

 private:
  // Entries that share their first bytes.
  struct Range {
    size_t begin, end;
  };
  // Those of `range` whose byte at `depth` is `byte`.
  Range Narrow(Range range, size_t depth, char byte) const;

  std::vector<std::pair<std::string, int32_t>> entries_;  // sorted
  // Entries with first byte b: from [b] to [b + 1].
  std::array<size_t, 257> by_first_byte_ = {};
};

}  // namespace txl
