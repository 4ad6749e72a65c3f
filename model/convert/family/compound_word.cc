// YatingMusic/compound-word-transformer, workspace/uncond/remi-xl: kimiyoung's
// layers between a plain embedding and a plain output matrix.

#include "model/convert/family/families.h"
#include "model/convert/family/kpt_trunk.h"
#include "model/convert/family/own_settings.h"
#include "model/convert/family/places.h"
#include "model/convert/family/plain_head.h"

namespace txl {
namespace {

constexpr char kEmbedding[] = "word_emb.lut.weight";
constexpr int64_t kCompoundWordMemLen = 512;  // of its config.yml

}  // namespace

bool MatchesCompoundWord(const NativeCheckpoint& checkpoint) {
  return HasPart(checkpoint, "word_emb.lut.");
}

absl::StatusOr<ConversionPlan> PlanCompoundWord(const PlanInput& input) {
  TXL_ASSIGN_OR_RETURN(const std::string place,
                       PlaceBefore(input.checkpoint, kEmbedding));
  PlanBuilder builder("compound-word", input, place);
  const nlohmann::json settings =
      OwnSettings(input.checkpoint, place, builder.table);
  if (settings.empty()) {
    builder.Note(
        "the file has no model_setting: what the weights do not show is the "
        "released model's, or the spec's");
  }
  if (!settings.contains("pre_lnorm")) {
    builder.draft.FamilyDefault("norm", "pre");
  }
  WindowRule rule;
  rule.same_length = true;
  ApplySettings(settings, input.spec, rule, kCompoundWordMemLen, builder);
  PlanKptTrunk("", builder);
  PlanPlainHead({kEmbedding, "linear_proj.weight", "linear_proj.bias"},
                builder.draft.Int("d_model", 0), builder);
  return std::move(builder).Finish();
}

}  // namespace txl
