#include "model/convert/family/plain_head.h"

#include <optional>

#include "model/convert/family/tied.h"

namespace txl {

void PlanPlainHead(const PlainHeadNames& names, int64_t d_model,
                   PlanBuilder& builder) {
  TensorTable& table = builder.table;
  ConfigDraft& draft = builder.draft;
  const int64_t vocab_size = table.Dim(names.embedding, 0);
  if (!table.status().ok()) return;
  draft.FromWeights("vocab_size", vocab_size);
  draft.FromWeights("d_embed", table.Dim(names.embedding, 1));
  draft.FromWeights("cutoffs", nlohmann::json::array());
  draft.FamilyDefault("div_val", 1);
  draft.FamilyDefault("tie_projs", nlohmann::json::array());
  const std::vector<int64_t> shape = {vocab_size, d_model};
  builder.Add("emb.0.w", table.Take(names.embedding, shape));
  const nlohmann::json said = draft.Get("tie_weight");
  std::optional<bool> configured;
  if (said.is_boolean()) configured = said.get<bool>();
  const bool tied = IsTied(builder, names.weight, names.embedding, configured);
  draft.FromWeights("tie_weight", tied);
  if (!tied) builder.Add("head.0.w", table.Take(names.weight, shape));
  builder.Add("head.0.b", table.Take(names.bias, {vocab_size}));
  draft.FromWeights("head_bias", true);
}

}  // namespace txl
