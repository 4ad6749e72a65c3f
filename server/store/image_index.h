#pragma once

// Which files there are, how large each is, and in which order they were used:
// what decides which go when there is no room.

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace txl {

// Not thread-safe.
class ImageIndex {
 public:
  // Of all files.
  int64_t bytes() const { return bytes_; }
  // 0: there is none of this key.
  int64_t BytesOf(absl::string_view key) const;
  bool Contains(absl::string_view key) const { return files_.contains(key); }
  std::vector<std::string> Keys() const;

  // A file, in the place of an earlier one of this key. Uses are in the order
  // of `last_use`, whatever its unit.
  void Set(const std::string& key, int64_t bytes, int64_t last_use);
  // Nothing happens where there is none.
  void Erase(absl::string_view key);

  // The key of the file that was not used for the longest time, `spared` left
  // out; null: there is no other. Valid until the next change.
  const std::string* Oldest(absl::string_view spared) const;

 private:
  struct File {
    int64_t bytes = 0;
    int64_t last_use = 0;
  };

  absl::flat_hash_map<std::string, File> files_;
  std::set<std::pair<int64_t, std::string>> by_use_;
  int64_t bytes_ = 0;
};

}  // namespace txl
