#include "server/session/request_history.h"

#include <openssl/sha.h>

#include <algorithm>
#include <cstring>

namespace txl {
namespace {

uint64_t HashOf(absl::string_view request_id) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(request_id.data()),
         request_id.size(), digest);
  uint64_t hash = 0;
  std::memcpy(&hash, digest, sizeof(hash));
  return hash;
}

}  // namespace

void RequestHistory::Add(absl::string_view request_id, int64_t capacity) {
  hashes_.push_back(HashOf(request_id));
  if (static_cast<int64_t>(hashes_.size()) > capacity) {
    hashes_.erase(hashes_.begin());
  }
}

bool RequestHistory::Contains(absl::string_view request_id) const {
  return std::find(hashes_.begin(), hashes_.end(), HashOf(request_id)) !=
         hashes_.end();
}

}  // namespace txl
