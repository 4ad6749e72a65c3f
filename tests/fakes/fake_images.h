#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "server/session/image_store.h"

namespace txl {

// Images that are kept in memory.
class FakeImages final : public ImageStore {
 public:
  void Put(const std::string& session_id, TokenSlice ids,
           std::shared_ptr<const StateImage> image) override {
    const std::string digest = DigestOfIds(ids, image->position);
    images[session_id] = {digest, std::move(image)};
  }
  void Get(const std::string& session_id,
           std::function<void(std::optional<KeptImage>)> done) override {
    const auto found = images.find(session_id);
    done(found == images.end() ? std::nullopt
                               : std::make_optional(found->second));
  }
  void Remove(const std::string& session_id) override {
    images.erase(session_id);
  }
  int64_t Bytes() const override { return 0; }
  void Flush() override {}

  std::map<std::string, KeptImage> images;
};

}  // namespace txl
