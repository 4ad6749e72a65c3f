// kimiyoung/transformer-xl, pytorch/: modules pickled whole, state dicts, and
// the checkpoints of NVIDIA's release of 2019, which has the same names and
// arithmetic.

#include "model/convert/family/adaptive_head.h"
#include "model/convert/family/families.h"
#include "model/convert/family/kpt_trunk.h"
#include "model/convert/family/own_settings.h"
#include "model/convert/family/places.h"

namespace txl {
namespace {

// Memory for a bare state dict, which says nothing; the character models of the
// paper were trained with it.
constexpr int64_t kKimiyoungMemLen = 512;

}  // namespace

bool MatchesKimiyoung(const NativeCheckpoint& checkpoint) {
  return HasPart(checkpoint, "crit.out_layers.") &&
         !HasPart(checkpoint, "transformer.word_emb.");
}

absl::StatusOr<ConversionPlan> PlanKimiyoung(const PlanInput& input) {
  TXL_ASSIGN_OR_RETURN(
      const std::string place,
      PlaceBefore(input.checkpoint, "word_emb.emb_layers.0.weight"));
  PlanBuilder builder("kimiyoung", input, place);
  const nlohmann::json settings =
      OwnSettings(input.checkpoint, place, builder.table);
  NoteSettings(settings, builder);
  ApplySettings(settings, input.spec, {}, kKimiyoungMemLen, builder);
  PlanKptTrunk("", builder);
  PlanAdaptiveHead({}, builder);
  return std::move(builder).Finish();
}

}  // namespace txl
