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
  // Texts are not empty and distinct, ids not negative.
  explicit PieceIndex(std::vector<std::pair<std::string, int32_t>> entries);

  // Calls visit(size, id) for every entry that `text` starts with, shortest
  // first. Takes time for the longest one, not for all of `text`.
  template <typename Visitor>
  void VisitPrefixes(absl::string_view text, Visitor visit) const {
    if (text.empty()) return;
    uint32_t node = first_[static_cast<unsigned char>(text[0])];
    for (size_t size = 1; node != 0; ++size) {
      if (nodes_[node].id >= 0) visit(size, nodes_[node].id);
      if (size == text.size()) return;
      node = Child(nodes_[node], text[size]);
    }
  }

  // Bytes of the longest entry that `text` starts with; 0: none.
  size_t LongestPrefix(absl::string_view text) const;

  // Bytes of the longest entry; 0: there is none.
  size_t longest() const { return longest_; }

 private:
  // Entries that share their first bytes.
  struct Node {
    int32_t id = -1;  // of the entry that ends here; -1: none
    // The nodes of one byte more, one after the other in the order of that
    // byte.
    uint32_t children = 0;
    uint16_t n_children = 0;
    unsigned char byte = 0;  // the last of those shared
  };

  // 0: none.
  uint32_t Child(const Node& node, char byte) const;

  std::vector<Node> nodes_;               // [0]: of no byte
  std::array<uint32_t, 256> first_ = {};  // nodes of one byte; 0: none
  size_t longest_ = 0;
};

}  // namespace txl
