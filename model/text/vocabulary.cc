#include "model/text/vocabulary.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace txl {

absl::StatusOr<std::string> Vocabulary::Decode(
    absl::Span<const int32_t> ids) const {
  const std::unique_ptr<Detokenizer> detokenizer = NewDetokenizer();
  std::string text;
  for (const int32_t id : ids) {
    if (!Has(id)) {
      return absl::OutOfRangeError(
          absl::StrCat("token id ", id, " outside the vocabulary of ", size()));
    }
    text += detokenizer->Add(id);
  }
  return text + detokenizer->Flush();
}

absl::StatusOr<std::unique_ptr<Detokenizer>> Vocabulary::RestoreDetokenizer(
    absl::string_view state) const {
  std::unique_ptr<Detokenizer> detokenizer = NewDetokenizer();
  if (detokenizer->SetState(state)) return detokenizer;
  return absl::InvalidArgumentError(
      "the bytes are not state of a detokenizer of this vocabulary");
}

std::optional<absl::Status> TokenList::AddUnknown(absl::string_view piece) {
  if (options_.skip_unknown) return absl::OkStatus();
  if (options_.unknown_counts != nullptr) {
    ++(*options_.unknown_counts)[std::string(piece)];
    return absl::OkStatus();
  }
  if (options_.unknown_id) return Add(*options_.unknown_id);
  return std::nullopt;
}

absl::Status TokenList::Full() const {
  return absl::OutOfRangeError(
      absl::StrCat("more than ", options_.max_tokens, " tokens"));
}

}  // namespace txl
