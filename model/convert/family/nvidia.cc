// NVIDIA DeepLearningExamples, PyTorch/LanguageModeling/Transformer-XL, from
// February 2020 on.

#include "model/convert/family/adaptive_head.h"
#include "model/convert/family/families.h"
#include "model/convert/family/kpt_trunk.h"
#include "model/convert/family/own_settings.h"
#include "model/convert/family/places.h"
#include "model/convert/family/tied.h"

namespace txl {
namespace {

// Memory for a bare model_state; the base model was trained with it.
constexpr int64_t kNvidiaMemLen = 192;

// crit.shared_out_projs.{b} are further names of the embedding's projections.
void DropSharedProjections(PlanBuilder& builder) {
  const std::string shared = "crit.shared_out_projs.";
  for (const std::string& name : builder.table.Unused()) {
    if (name.compare(0, shared.size(), shared) != 0) continue;
    const std::string own = "word_emb.emb_projs." + name.substr(shared.size());
    if (builder.table.Has(own)) IsTied(builder, name, own, true);
  }
}

}  // namespace

bool MatchesNvidia(const NativeCheckpoint& checkpoint) {
  return HasPart(checkpoint, "crit.out_layers_biases.");
}

absl::StatusOr<ConversionPlan> PlanNvidia(const PlanInput& input) {
  TXL_ASSIGN_OR_RETURN(
      const std::string place,
      PlaceBefore(input.checkpoint, "word_emb.emb_layers.0.weight"));
  PlanBuilder builder("nvidia", input, place);
  const nlohmann::json settings =
      OwnSettings(input.checkpoint, place, builder.table);
  NoteSettings(settings, builder);
  WindowRule rule;
  rule.beyond_mem_len = 1;
  ApplySettings(settings, input.spec, rule, kNvidiaMemLen, builder);
  PlanKptTrunk("", builder);
  AdaptiveNames names;
  names.weight_prefix = "crit.out_layers_weights.";
  names.weight_suffix = "";
  names.bias_prefix = "crit.out_layers_biases.";
  names.bias_suffix = "";
  PlanAdaptiveHead(names, builder);
  DropSharedProjections(builder);
  return std::move(builder).Finish();
}

}  // namespace txl
