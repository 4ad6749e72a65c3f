#pragma once

// Token id = byte value.

#include <memory>
#include <string>
#include <vector>

#include "model/text/vocabulary.h"

namespace txl {

class ByteVocabulary final : public Vocabulary {
 public:
  static constexpr int64_t kSize = 256;

  using Vocabulary::Encode;
  int64_t size() const override { return kSize; }
  absl::string_view kind() const override { return "bytes"; }
  // Every byte has an id.
  absl::StatusOr<std::vector<int32_t>> Encode(
      absl::string_view text, int64_t max_tokens) const override;
  std::string TokenBytes(int32_t id) const override;
  std::unique_ptr<Detokenizer> NewDetokenizer() const override;
};

}  // namespace txl
