#include "model/tool/flag_values.h"

namespace txl {

const NamesOf<NormPlacement>& NormNames() {
  static const auto* names = new NamesOf<NormPlacement>{
      {"pre", NormPlacement::kPre}, {"post", NormPlacement::kPost}};
  return *names;
}

const NamesOf<CorpusVocabulary>& VocabularyNames() {
  static const auto* names = new NamesOf<CorpusVocabulary>{
      {"bytes", CorpusVocabulary::kBytes},
      {"characters", CorpusVocabulary::kCharacters}};
  return *names;
}

const NamesOf<c10::ScalarType>& DTypeNames() {
  static const auto* names =
      new NamesOf<c10::ScalarType>{{"f32", c10::kFloat},
                                   {"f16", c10::kHalf},
                                   {"bf16", c10::kBFloat16},
                                   {"f64", c10::kDouble}};
  return *names;
}

const NamesOf<c10::ScalarType>& ComputeNames() {
  static const auto* names =
      new NamesOf<c10::ScalarType>{{"f32", c10::kFloat}, {"f64", c10::kDouble}};
  return *names;
}

}  // namespace txl
