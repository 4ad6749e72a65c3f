#include "model/tool/flag_values.h"

#include <map>
#include <string>

namespace txl {

CLI::CheckedTransformer NormNames() {
  return CLI::CheckedTransformer(std::map<std::string, NormPlacement>{
      {"pre", NormPlacement::kPre}, {"post", NormPlacement::kPost}});
}

CLI::CheckedTransformer VocabularyNames() {
  return CLI::CheckedTransformer(std::map<std::string, CorpusVocabulary>{
      {"bytes", CorpusVocabulary::kBytes},
      {"characters", CorpusVocabulary::kCharacters}});
}

CLI::CheckedTransformer DTypeNames() {
  return CLI::CheckedTransformer(
      std::map<std::string, c10::ScalarType>{{"f32", c10::kFloat},
                                             {"f16", c10::kHalf},
                                             {"bf16", c10::kBFloat16},
                                             {"f64", c10::kDouble}});
}

CLI::CheckedTransformer ComputeNames() {
  return CLI::CheckedTransformer(std::map<std::string, c10::ScalarType>{
      {"f32", c10::kFloat}, {"f64", c10::kDouble}});
}

}  // namespace txl
