#include "model/text/byte_vocabulary.h"

#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "model/text/tokenizer_fields.h"
#include "model/text/utf8.h"

namespace txl {
namespace {

class ByteDetokenizer final : public Detokenizer {
 public:
  explicit ByteDetokenizer(const std::vector<unsigned char>& bytes)
      : Detokenizer(static_cast<int64_t>(bytes.size())), bytes_(&bytes) {}

  std::string Flush() override {
    std::string out;
    assembler_.Flush(out);
    return out;
  }

  std::unique_ptr<Detokenizer> Clone() const override {
    return std::make_unique<ByteDetokenizer>(*this);
  }

  std::string State() const override { return assembler_.held(); }

  bool SetState(absl::string_view state) override {
    return assembler_.SetHeld(state);
  }

 private:
  std::string AddKnown(int32_t id) override {
    std::string out;
    assembler_.Add(static_cast<char>((*bytes_)[id]), out);
    return out;
  }

  const std::vector<unsigned char>* bytes_;
  Utf8Assembler assembler_;
};

const std::vector<unsigned char>& AllBytes() {
  static const auto* const all = [] {
    auto* bytes = new std::vector<unsigned char>(ByteVocabulary::kSize);
    std::iota(bytes->begin(), bytes->end(), static_cast<unsigned char>(0));
    return bytes;
  }();
  return *all;
}

}  // namespace

ByteTable::ByteTable(absl::string_view kind, std::vector<unsigned char> bytes)
    : kind_(kind), bytes_(std::move(bytes)) {
  ids_.fill(-1);
  for (size_t i = 0; i < bytes_.size(); ++i) {
    ids_[bytes_[i]] = static_cast<int32_t>(i);
  }
}

absl::StatusOr<std::vector<int32_t>> ByteTable::Encode(
    absl::string_view text, const EncodeOptions& options) const {
  TokenList ids(options);
  for (size_t i = 0; i < text.size(); ++i) {
    const int32_t id = ids_[static_cast<unsigned char>(text[i])];
    if (id >= 0) {
      TXL_RETURN_IF_ERROR(ids.Add(id));
    } else if (text[i] != '\n') {
      const std::optional<absl::Status> added =
          ids.AddUnknown(text.substr(i, 1));
      if (!added) {
        return absl::InvalidArgumentError(
            absl::StrCat("the vocabulary has no symbol for byte ",
                         static_cast<int>(static_cast<unsigned char>(text[i])),
                         " at offset ", i, " of the text"));
      }
      TXL_RETURN_IF_ERROR(*added);
    }
  }
  return ids.Take();
}

std::string ByteTable::BytesOf(int32_t id) const {
  return std::string(1, static_cast<char>(bytes_[id]));
}

std::unique_ptr<Detokenizer> ByteTable::NewDetokenizer() const {
  return std::make_unique<ByteDetokenizer>(bytes_);
}

ByteVocabulary::ByteVocabulary() : ByteTable("bytes", AllBytes()) {}

std::unique_ptr<Detokenizer> ByteVocabulary::NewDetokenizer() const {
  return std::make_unique<ByteDetokenizer>(AllBytes());
}

LoadedVocabulary LoadBytes(const TokenizerSource& source) {
  TXL_RETURN_IF_ERROR(CheckFieldNames(source.json, {}));
  if (source.vocab_size != ByteVocabulary::kSize) {
    return TokenizerFieldError(
        "kind",
        absl::StrCat("bytes has ", ByteVocabulary::kSize,
                     " ids, the model's vocab_size is ", source.vocab_size));
  }
  return std::make_unique<ByteVocabulary>();
}

LoadedVocabulary LoadDecimalBytes(const TokenizerSource& source) {
  TXL_RETURN_IF_ERROR(CheckFieldNames(source.json, {"file"}));
  TXL_ASSIGN_OR_RETURN(const std::vector<std::string> symbols,
                       FileSymbols(source));
  std::vector<unsigned char> bytes;
  bytes.reserve(symbols.size());
  for (size_t i = 0; i < symbols.size(); ++i) {
    int32_t value = -1;
    // The spelling is compared, so that "7" and "07" are not the same byte.
    if (!absl::SimpleAtoi(symbols[i], &value) || value < 0 || value > 255 ||
        absl::StrCat(value) != symbols[i]) {
      return absl::InvalidArgumentError(
          absl::StrCat(source.json["file"].get<std::string>(), ": symbol ",
                       i + 1, ": must be a decimal byte value, 0 to 255"));
    }
    bytes.push_back(static_cast<unsigned char>(value));
  }
  return std::make_unique<DecimalByteVocabulary>(std::move(bytes));
}

}  // namespace txl
