#include "model/text/sentencepiece_vocabulary.h"

#include <cstddef>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "model/base/status_macros.h"
#include "model/text/sentencepiece_model.h"
#include "model/text/tokenizer_fields.h"
#include "model/text/utf8.h"

namespace txl {
namespace {

// The byte that "<0x41>" names.
char ByteOf(const SentencePiece& piece) {
  int32_t value = 0;
  if (!absl::SimpleHexAtoi(piece.text.substr(3, 2), &value)) return 0;
  return static_cast<char>(value);
}

class PieceDetokenizer final : public Detokenizer {
 public:
  PieceDetokenizer(const SentencePieceModel& model, int64_t size)
      : Detokenizer(size), model_(&model) {}

  std::string Flush() override {
    std::string out;
    assembler_.Flush(out);
    at_start_ = at_start_ && out.empty();
    return out;
  }

  std::unique_ptr<Detokenizer> Clone() const override {
    return std::make_unique<PieceDetokenizer>(*this);
  }

  // Whether there was text, then the bytes of an incomplete character.
  std::string State() const override {
    const std::string& held = assembler_.held();
    if (at_start_ && held.empty()) return "";
    return absl::StrCat(at_start_ ? "0" : "1", held);
  }

  bool SetState(absl::string_view state) override {
    at_start_ = !absl::StartsWith(state, "1");
    return assembler_.SetHeld(state.substr(state.empty() ? 0 : 1)) &&
           state == State();
  }

 private:
  std::string AddKnown(int32_t id) override {
    if (id >= static_cast<int32_t>(model_->pieces.size())) return Flush();
    const SentencePiece& piece = model_->pieces[id];
    std::string out;
    if (piece.type == PieceType::kByte) {
      assembler_.Add(ByteOf(piece), out);
    } else {
      assembler_.Flush(out);
      at_start_ = at_start_ && out.empty();
      out += Text(piece);
    }
    at_start_ = at_start_ && out.empty();
    return out;
  }

  std::string Text(const SentencePiece& piece) {
    if (piece.type == PieceType::kControl) return "";
    if (piece.type == PieceType::kUnknown) return model_->unknown_text;
    absl::string_view text = piece.text;
    const bool drops =
        model_->add_dummy_prefix || model_->remove_extra_whitespace;
    if (at_start_ && drops && absl::ConsumePrefix(&text, kPieceSpace)) {
      // Only one such space was put there; where extra ones are removed, none
      // can be meant.
      at_start_ = model_->remove_extra_whitespace;
    }
    return absl::StrReplaceAll(text, {{kPieceSpace, " "}});
  }

  const SentencePieceModel* model_;
  Utf8Assembler assembler_;
  bool at_start_ = true;  // no text yet
};

}  // namespace

absl::StatusOr<std::unique_ptr<Vocabulary>> SentencePieceVocabulary::Create(
    SentencePieceModel model, int64_t size) {
  TXL_ASSIGN_OR_RETURN(CharacterMap map,
                       CharacterMap::Parse(model.character_map));
  return std::unique_ptr<Vocabulary>(
      new SentencePieceVocabulary(std::move(model), size, std::move(map)));
}

SentencePieceVocabulary::SentencePieceVocabulary(SentencePieceModel model,
                                                 int64_t size, CharacterMap map)
    : model_(std::move(model)),
      size_(size),
      cutter_(model_),
      normalizer_(model_, std::move(map), cutter_.user_defined()) {
  if (!model_.byte_fallback) return;
  byte_ids_.resize(256);
  for (size_t i = 0; i < model_.pieces.size(); ++i) {
    const SentencePiece& piece = model_.pieces[i];
    if (piece.type != PieceType::kByte) continue;
    byte_ids_[static_cast<unsigned char>(ByteOf(piece))] =
        static_cast<int32_t>(i);
  }
}

absl::StatusOr<std::vector<int32_t>> SentencePieceVocabulary::Encode(
    absl::string_view text, const EncodeOptions& options) const {
  if (!IsValidUtf8(text)) {
    return absl::InvalidArgumentError("the text is not valid UTF-8");
  }
  std::string normalized = normalizer_.Normalize(text);
  // A damaged table of characters may give anything.
  if (!IsValidUtf8(normalized)) normalized = ReplaceInvalidUtf8(normalized);
  TokenList ids(options);
  bool after_unknown = false;
  TXL_RETURN_IF_ERROR(
      cutter_.CutUp(normalized, [&](const PieceCutter::Cut& cut) {
        const bool unknown = cut.id == model_.unknown_id;
        const bool again = std::exchange(after_unknown, unknown) && unknown;
        if (unknown && !byte_ids_.empty()) return AddBytes(cut.text, ids);
        if (unknown && again) return absl::OkStatus();
        std::optional<absl::Status> added;
        if (unknown) added = ids.AddUnknown(cut.text);
        return added ? *added : ids.Add(cut.id);
      }));
  return ids.Take();
}

absl::Status SentencePieceVocabulary::AddBytes(absl::string_view text,
                                               TokenList& ids) const {
  for (const char byte : text) {
    TXL_RETURN_IF_ERROR(ids.Add(byte_ids_[static_cast<unsigned char>(byte)]));
  }
  return absl::OkStatus();
}

std::string SentencePieceVocabulary::BytesOf(int32_t id) const {
  if (id >= static_cast<int32_t>(model_.pieces.size())) return "";
  const SentencePiece& piece = model_.pieces[id];
  if (piece.type == PieceType::kByte) return std::string(1, ByteOf(piece));
  if (piece.type == PieceType::kControl) return "";
  return absl::StrReplaceAll(piece.text, {{kPieceSpace, " "}});
}

std::unique_ptr<Detokenizer> SentencePieceVocabulary::NewDetokenizer() const {
  return std::make_unique<PieceDetokenizer>(model_, size_);
}

LoadedVocabulary LoadSentencePiece(const TokenizerSource& source) {
  TXL_RETURN_IF_ERROR(CheckFieldNames(source.json, {"file"}));
  TXL_ASSIGN_OR_RETURN(const std::string name, FileName(source));
  TXL_ASSIGN_OR_RETURN(const std::string content, FileContent(source));
  absl::StatusOr<SentencePieceModel> model = ParseSentencePieceModel(content);
  if (!model.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": ", model.status().message()));
  }
  if (static_cast<int64_t>(model->pieces.size()) > source.vocab_size) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": has ", model->pieces.size(),
                     " pieces, the model's vocab_size is ", source.vocab_size));
  }
  LoadedVocabulary vocabulary =
      SentencePieceVocabulary::Create(*std::move(model), source.vocab_size);
  if (vocabulary.ok()) return vocabulary;
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": ", vocabulary.status().message()));
}

}  // namespace txl
