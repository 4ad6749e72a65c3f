#include "server/store/image_index.h"

namespace txl {

int64_t ImageIndex::BytesOf(absl::string_view key) const {
  const auto found = files_.find(key);
  return found == files_.end() ? 0 : found->second.bytes;
}

std::vector<std::string> ImageIndex::Keys() const {
  std::vector<std::string> keys;
  keys.reserve(files_.size());
  for (const auto& [key, file] : files_) keys.push_back(key);
  return keys;
}

void ImageIndex::Set(const std::string& key, int64_t bytes, int64_t last_use) {
  Erase(key);
  files_[key] = {bytes, last_use};
  by_use_.emplace(last_use, key);
  bytes_ += bytes;
}

void ImageIndex::Erase(absl::string_view key) {
  const auto found = files_.find(key);
  if (found == files_.end()) return;
  bytes_ -= found->second.bytes;
  by_use_.erase({found->second.last_use, found->first});
  files_.erase(found);
}

const std::string* ImageIndex::Oldest(absl::string_view spared) const {
  for (const auto& [last_use, key] : by_use_) {
    if (key != spared) return &key;
  }
  return nullptr;
}

}  // namespace txl
