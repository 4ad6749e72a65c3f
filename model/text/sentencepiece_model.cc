#include "model/text/sentencepiece_model.h"

#include <cmath>
#include <cstddef>
#include <cstring>
#include <set>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "model/base/status_macros.h"
#include "model/text/utf8.h"

namespace txl {
namespace {

using Algorithm = SentencePieceModel::Algorithm;

absl::Status NotAModel(absl::string_view problem) {
  return absl::InvalidArgumentError(
      absl::StrCat("is not a SentencePiece model: ", problem));
}

absl::Status ReadPiece(absl::string_view message, SentencePieceModel& model) {
  SentencePiece piece;
  uint64_t type = static_cast<uint64_t>(PieceType::kNormal);
  WireReader in(message);
  while (in.Next()) {
    if (in.field() == 1 && in.is_bytes()) piece.text = std::string(in.bytes());
    if (in.field() == 2 && in.is_float()) piece.score = in.AsFloat();
    if (in.field() == 3 && in.is_varint()) type = in.number();
  }
  const std::string where = absl::StrCat("piece ", model.pieces.size(), ": ");
  if (!in.ok()) return NotAModel(where + "is damaged");
  if (type < 1 || type > 6) return NotAModel(where + "has an unknown type");
  if (piece.text.empty()) return NotAModel(where + "is empty");
  if (!IsValidUtf8(piece.text)) return NotAModel(where + "is not valid UTF-8");
  if (!std::isfinite(piece.score))
    return NotAModel(where + "has no finite score");
  piece.type = static_cast<PieceType>(type);
  model.pieces.push_back(std::move(piece));
  return absl::OkStatus();
}

absl::Status ReadTrainer(absl::string_view message, SentencePieceModel& model) {
  uint64_t algorithm = static_cast<uint64_t>(Algorithm::kUnigram);
  WireReader in(message);
  while (in.Next()) {
    if (in.is_varint()) {
      if (in.field() == 3) algorithm = in.number();
      if (in.field() == 24) model.whitespace_is_suffix = in.number() != 0;
      if (in.field() == 35) model.byte_fallback = in.number() != 0;
    } else if (in.field() == 44 && in.is_bytes()) {
      model.unknown_text = std::string(in.bytes());
    }
  }
  if (!in.ok()) return NotAModel("its training settings are damaged");
  if (algorithm != 1 && algorithm != 2) {
    return absl::InvalidArgumentError(
        "cuts text by words or characters; only unigram and BPE are supported");
  }
  if (!IsValidUtf8(model.unknown_text)) {
    return NotAModel("its text for unknown pieces is not valid UTF-8");
  }
  model.algorithm = static_cast<Algorithm>(algorithm);
  return absl::OkStatus();
}

absl::Status ReadNormalizer(absl::string_view message,
                            SentencePieceModel& model) {
  WireReader in(message);
  while (in.Next()) {
    if (in.field() == 2 && in.is_bytes()) {
      model.character_map = std::string(in.bytes());
    }
    if (!in.is_varint()) continue;
    if (in.field() == 3) model.add_dummy_prefix = in.number() != 0;
    if (in.field() == 4) model.remove_extra_whitespace = in.number() != 0;
    if (in.field() == 5) model.escape_whitespace = in.number() != 0;
  }
  return in.ok() ? absl::OkStatus() : NotAModel("its normalizer is damaged");
}

absl::Status CheckDenormalizer(absl::string_view message) {
  WireReader in(message);
  while (in.Next()) {
    if (in.field() == 2 && in.is_bytes() && !in.bytes().empty()) {
      return absl::InvalidArgumentError(
          "has rules for decoding, which are not supported");
    }
  }
  return in.ok() ? absl::OkStatus() : NotAModel("its denormalizer is damaged");
}

absl::Status CheckPieces(SentencePieceModel& model) {
  absl::flat_hash_set<absl::string_view> seen;
  std::set<std::string> bytes;
  int n_unknown = 0;
  for (size_t i = 0; i < model.pieces.size(); ++i) {
    const SentencePiece& piece = model.pieces[i];
    if (!seen.insert(piece.text).second) {
      return NotAModel(absl::StrCat("piece ", i, ": was there before"));
    }
    if (piece.type == PieceType::kByte) bytes.insert(piece.text);
    if (piece.type == PieceType::kUnknown) {
      model.unknown_id = static_cast<int32_t>(i);
      ++n_unknown;
    }
  }
  if (n_unknown != 1) return NotAModel("it has not exactly one unknown piece");
  size_t n_bytes = 0;
  for (int byte = 0; byte < 256; ++byte) {
    n_bytes += bytes.count(absl::StrFormat("<0x%02X>", byte));
  }
  if (n_bytes != bytes.size() || (model.byte_fallback && n_bytes != 256)) {
    return NotAModel("its pieces for bytes are not those of all bytes");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SentencePieceModel> ParseSentencePieceModel(
    absl::string_view content) {
  SentencePieceModel model;
  WireReader in(content);
  while (in.Next()) {
    if (!in.is_bytes()) continue;
    if (in.field() == 1) TXL_RETURN_IF_ERROR(ReadPiece(in.bytes(), model));
    if (in.field() == 2) TXL_RETURN_IF_ERROR(ReadTrainer(in.bytes(), model));
    if (in.field() == 3) TXL_RETURN_IF_ERROR(ReadNormalizer(in.bytes(), model));
    if (in.field() == 5) TXL_RETURN_IF_ERROR(CheckDenormalizer(in.bytes()));
  }
  if (!in.ok()) return NotAModel("it is damaged or cut off");
  TXL_RETURN_IF_ERROR(CheckPieces(model));
  return model;
}

bool WireReader::Next() {
  if (!ok_ || rest_.empty()) return false;
  bytes_ = absl::string_view();
  uint64_t tag = 0;
  ok_ = Varint(tag);
  field_ = tag >> 3;
  type_ = tag & 7;
  if (!ok_ || field_ == 0) return ok_ = false;
  switch (type_) {
    case 0:
      return ok_ = Varint(number_);
    case 1:
      return ok_ = Fixed(8);
    case 5:
      return ok_ = Fixed(4);
    case 2:
      if (!Varint(number_) || number_ > rest_.size()) return ok_ = false;
      bytes_ = rest_.substr(0, static_cast<size_t>(number_));
      rest_.remove_prefix(bytes_.size());
      return true;
    default:  // groups
      return ok_ = false;
  }
}

float WireReader::AsFloat() const {
  const auto bits = static_cast<uint32_t>(number_);
  float value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

bool WireReader::Varint(uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (rest_.empty()) return false;
    const auto byte = static_cast<unsigned char>(rest_[0]);
    rest_.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

bool WireReader::Fixed(int size) {
  if (rest_.size() < static_cast<size_t>(size)) return false;
  number_ = 0;
  for (int i = size - 1; i >= 0; --i) {
    number_ = number_ << 8 | static_cast<unsigned char>(rest_[i]);
  }
  rest_.remove_prefix(static_cast<size_t>(size));
  return true;
}

}  // namespace txl
