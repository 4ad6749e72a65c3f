#pragma once

// SentencePiece models (google/sentencepiece, sentencepiece_model.proto), read
// without its library: Debian's copy carries an old protobuf whose symbols
// clash with the one that gRPC needs, so that a program with both dies at its
// start.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace txl {

enum class PieceType {  // values of the file
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,      // stands for no text
  kUserDefined = 4,  // always cut out whole
  kUnused = 5,
  kByte = 6,  // "<0x41>"
};

struct SentencePiece {
  std::string text;
  float score = 0;
  PieceType type = PieceType::kNormal;
};

struct SentencePieceModel {
  enum class Algorithm { kUnigram = 1, kBpe = 2 };

  std::vector<SentencePiece> pieces;  // by id
  int32_t unknown_id = 0;
  Algorithm algorithm = Algorithm::kUnigram;
  bool byte_fallback = false;  // unknown characters as bytes
  bool whitespace_is_suffix = false;
  std::string unknown_text = " \u2047 ";  // what an unknown piece decodes to
  // How text is normalized before it is cut.
  std::string character_map;  // see sentencepiece_normalizer.h; may be empty
  bool add_dummy_prefix = true;
  bool remove_extra_whitespace = true;
  bool escape_whitespace = true;
};

// Errors: InvalidArgument: not such a file or damaged; an empty or repeated
// piece, not exactly one unknown piece, byte fallback without all 256 bytes; an
// algorithm other than unigram and BPE; rules for decoding
// (denormalizer).
absl::StatusOr<SentencePieceModel> ParseSentencePieceModel(
    absl::string_view content);

// The wire format of Protocol Buffers, field by field; for messages of a few
// fields, where generated code is not worth its dependency.

class WireReader {
 public:
  // A view: `message` must outlive the reader and what it returns.
  explicit WireReader(absl::string_view message) : rest_(message) {}

  // Moves to the next field. False at the end, and when what follows is no
  // field; ok() tells which.
  bool Next();
  bool ok() const { return ok_; }

  // The current field. `number()` is its value for the types that are numbers,
  // `bytes()` its content for the type that has a length (else empty).
  uint64_t field() const { return field_; }
  bool is_bytes() const { return type_ == 2; }
  bool is_varint() const { return type_ == 0; }
  bool is_float() const { return type_ == 5; }
  uint64_t number() const { return number_; }
  float AsFloat() const;  // REQUIRES: is_float()
  absl::string_view bytes() const { return bytes_; }

 private:
  bool Varint(uint64_t& value);
  bool Fixed(int size);

  absl::string_view rest_;
  bool ok_ = true;
  uint64_t field_ = 0;
  uint64_t type_ = 0;
  uint64_t number_ = 0;
  absl::string_view bytes_;
};

}  // namespace txl
