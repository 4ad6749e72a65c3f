#pragma once

// Vocabularies whose tokens are single bytes.

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/text/vocabulary.h"

namespace txl {

// An id stands for one byte; not every byte need have an id.
class ByteTable : public Vocabulary {
 public:
  // bytes[id]: the byte. REQUIRES: all distinct.
  ByteTable(absl::string_view kind, std::vector<unsigned char> bytes);

  using Vocabulary::Encode;
  int64_t size() const override { return static_cast<int64_t>(bytes_.size()); }
  absl::string_view kind() const override { return kind_; }
  // Line breaks are dropped when byte 10 has no id: the original preparation
  // uses them only to part lines. Pieces of text are bytes. Errors:
  // InvalidArgument naming the first other byte without an id and its offset.
  absl::StatusOr<std::vector<int32_t>> Encode(
      absl::string_view text, const EncodeOptions& options) const override;
  // Refers to this vocabulary.
  std::unique_ptr<Detokenizer> NewDetokenizer() const override;

 private:
  std::string BytesOf(int32_t id) const override;

  const absl::string_view kind_;
  const std::vector<unsigned char> bytes_;
  std::array<int32_t, 256> ids_;  // by byte; -1: none
};

// Token id = byte value.
class ByteVocabulary final : public ByteTable {
 public:
  static constexpr int64_t kSize = 256;
  ByteVocabulary();
  // Refers to nothing.
  std::unique_ptr<Detokenizer> NewDetokenizer() const override;
};

// Symbols that are decimal byte values ("32", "101"), as the original code
// prepares enwik8 and other text by bytes. TokenBytes is the byte, not its
// decimal spelling.
class DecimalByteVocabulary final : public ByteTable {
 public:
  explicit DecimalByteVocabulary(std::vector<unsigned char> bytes)
      : ByteTable("decimal_bytes", std::move(bytes)) {}
};

}  // namespace txl
