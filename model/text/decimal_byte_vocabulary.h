#pragma once

// Symbols that are decimal byte values ("32", "101"), as the original code
// prepares enwik8 and other text by bytes: an id stands for one byte, and not
// every byte need have an id.

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/text/vocabulary.h"

namespace txl {

class DecimalByteVocabulary final : public Vocabulary {
 public:
  // bytes[id]: the byte. REQUIRES: all distinct.
  explicit DecimalByteVocabulary(std::vector<unsigned char> bytes);

  using Vocabulary::Encode;
  int64_t size() const override { return static_cast<int64_t>(bytes_.size()); }
  absl::string_view kind() const override { return "decimal_bytes"; }
  // Line breaks are dropped when byte 10 has no id: the original preparation
  // uses them only to part lines. Errors: InvalidArgument naming the first
  // other byte without an id and its offset.
  absl::StatusOr<std::vector<int32_t>> Encode(
      absl::string_view text, int64_t max_tokens) const override;
  // The byte, not its decimal spelling.
  std::string TokenBytes(int32_t id) const override;
  std::unique_ptr<Detokenizer> NewDetokenizer() const override;

 private:
  const std::vector<unsigned char> bytes_;
  std::array<int32_t, 256> ids_;  // by byte; -1: none
};

}  // namespace txl
