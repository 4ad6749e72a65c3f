#include "model/text/piece_index.h"

#include <algorithm>

namespace txl {

PieceIndex::PieceIndex(std::vector<std::pair<std::string, int32_t>> entries)
    : nodes_(1) {
  std::sort(entries.begin(), entries.end());
  // Entries of each node, in the order of the nodes; those that end in the node
  // are left out.
  std::vector<std::pair<size_t, size_t>> ranges = {{0, entries.size()}};
  size_t depth = 0;
  size_t level_end = 1;  // nodes before it share `depth` bytes at most
  for (size_t node = 0; node < nodes_.size(); ++node) {
    if (node == level_end) {
      ++depth;
      level_end = nodes_.size();
    }
    auto [begin, end] = ranges[node];
    if (begin < end && entries[begin].first.size() == depth) {
      longest_ = depth;
      nodes_[node].id = entries[begin++].second;
    }
    nodes_[node].children = static_cast<uint32_t>(nodes_.size());
    while (begin < end) {
      const char byte = entries[begin].first[depth];
      const size_t first = begin;
      while (begin < end && entries[begin].first[depth] == byte) ++begin;
      ranges.emplace_back(first, begin);
      nodes_.emplace_back().byte = static_cast<unsigned char>(byte);
      ++nodes_[node].n_children;
    }
  }
  for (uint32_t i = 0; i < nodes_[0].n_children; ++i) {
    first_[nodes_[1 + i].byte] = 1 + i;
  }
}

size_t PieceIndex::LongestPrefix(absl::string_view text) const {
  size_t longest = 0;
  VisitPrefixes(text, [&](size_t size, int32_t) { longest = size; });
  return longest;
}

uint32_t PieceIndex::Child(const Node& node, char byte) const {
  const auto wanted = static_cast<unsigned char>(byte);
  const auto begin = nodes_.begin() + node.children;
  const auto end = begin + node.n_children;
  const auto found = std::lower_bound(
      begin, end, wanted,
      [](const Node& child, unsigned char b) { return child.byte < b; });
  if (found == end || found->byte != wanted) return 0;
  return static_cast<uint32_t>(found - nodes_.begin());
}

}  // namespace txl
