#pragma once

// Ids that are digits, as in the model that sorts them.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/text/vocabulary.h"

namespace txl {

class DigitVocabulary final : public Vocabulary {
 public:
  // REQUIRES: 1 <= size <= 10.
  explicit DigitVocabulary(int64_t size) : size_(size) {}

  using Vocabulary::Encode;
  int64_t size() const override { return size_; }
  absl::string_view kind() const override { return "digits"; }
  // "3 1 4" or "314": every digit is an id of its own, whitespace is skipped.
  // Errors: InvalidArgument showing the first other character or too large
  // digit.
  absl::StatusOr<std::vector<int32_t>> Encode(
      absl::string_view text, const EncodeOptions& options) const override;
  // Digits joined by one space, which comes with the digit after it.
  std::unique_ptr<Detokenizer> NewDetokenizer() const override;

 private:
  std::string BytesOf(int32_t id) const override;

  const int64_t size_;
};

}  // namespace txl
