#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "model/text/byte_vocabulary.h"
#include "model/text/vocabulary_kinds.h"

namespace txl {

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
