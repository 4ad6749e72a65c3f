#pragma once

// Where state images outlive memory. The session store declares it,
// server/store implements it: the store knows no files.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/memory/state_image.h"
#include "server/base/digest.h"
#include "server/session/token_sequence.h"

namespace txl {

// Stands for the ids that made the rows of an image: those before `position`
// that the rows depend on. 32 bytes.
inline std::string DigestOfIds(const TokenSlice& ids, int64_t position) {
  std::vector<int32_t> words = ids.Copy();
  // The rows know their positions.
  words.push_back(static_cast<int32_t>(position));
  words.push_back(static_cast<int32_t>(position >> 32));
  return Sha256Of({reinterpret_cast<const char*>(words.data()),
                   words.size() * sizeof(int32_t)});
}

struct KeptImage {
  std::string ids_digest;  // DigestOfIds at image->position
  std::shared_ptr<const StateImage> image;
};

// Thread-safe. Nothing waits for the storage: calls of one session are carried
// out in their order. An image is a cache: whatever becomes of it, the session
// can be computed again from its ids.
class ImageStore {
 public:
  virtual ~ImageStore() = default;

  // Replaces the session's image; `ids` as in DigestOfIds. May be left out
  // where too much waits.
  virtual void Put(const std::string& session_id, TokenSlice ids,
                   std::shared_ptr<const StateImage> image) = 0;
  // Nothing: there is none, or it is damaged. `done` runs on any thread and
  // must not wait.
  virtual void Get(const std::string& session_id,
                   std::function<void(std::optional<KeptImage>)> done) = 0;
  virtual void Remove(const std::string& session_id) = 0;
  // What the images take.
  virtual int64_t Bytes() const = 0;
  // Waits until what was put before is there.
  virtual void Flush() = 0;
};

}  // namespace txl
