#include "model/text/vocabulary.h"

namespace txl {

std::string Vocabulary::Decode(absl::Span<const int32_t> ids) const {
  const std::unique_ptr<Detokenizer> detokenizer = NewDetokenizer();
  std::string text;
  for (const int32_t id : ids) text += detokenizer->Add(id);
  return text + detokenizer->Flush();
}

}  // namespace txl
