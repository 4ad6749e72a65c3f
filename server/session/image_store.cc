#include "server/session/image_store.h"

#include <openssl/sha.h>

#include <vector>

namespace txl {

std::string DigestOfIds(const TokenSlice& ids, int64_t position) {
  std::vector<int32_t> words = ids.Copy();
  // The rows know their positions.
  words.push_back(static_cast<int32_t>(position));
  words.push_back(static_cast<int32_t>(position >> 32));
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(words.data()),
         words.size() * sizeof(int32_t),
         reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

}  // namespace txl
