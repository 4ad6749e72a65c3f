// Hugging Face transformers, TransfoXLLMHeadModel: config.json with
// pytorch_model.bin or model.safetensors.

#include <utility>

#include "model/convert/family/adaptive_head.h"
#include "model/convert/family/families.h"
#include "model/convert/family/kpt_trunk.h"
#include "model/convert/family/own_settings.h"
#include "model/convert/family/places.h"

namespace txl {
namespace {

using nlohmann::json;

// Defaults of the configuration class, which are those of the released model.
constexpr int64_t kMemLen = 1600;
constexpr int64_t kClampLen = 1000;

// The first of two names that is there.
json Either(const json& config, const char* name, const char* other) {
  json value = Member(&config, name);
  return value.is_discarded() ? Member(&config, other) : value;
}

// tie_projs, or what proj_share_all_but_first makes of it.
json TiedProjections(const json& config, size_t bins) {
  json list = Member(&config, "tie_projs");
  if (!list.is_discarded()) return list;
  const json share = Member(&config, "proj_share_all_but_first");
  list = json::array({false});
  while (list.size() < bins) list.push_back(share != false);
  return list;
}

// The settings under the names of kimiyoung's code.
json Settings(const json& config) {
  json settings = config.is_object() ? config : json::object();
  const auto set = [&settings](const char* name, json value) {
    settings.erase(name);
    if (!value.is_discarded()) settings[name] = std::move(value);
  };
  set("n_token", Either(config, "vocab_size", "n_token"));
  set("tie_weight", Either(config, "tie_word_embeddings", "tie_weight"));
  set("ln_eps", Member(&config, "layer_norm_epsilon"));
  return settings;
}

void SetDefaults(const json& settings, PlanBuilder& builder) {
  ConfigDraft& draft = builder.draft;
  draft.FamilyDefault("cutoffs", {20000, 40000, 200000});
  draft.FamilyDefault("clamp_len", kClampLen);
  draft.FamilyDefault("tie_weight", true);
  draft.FamilyDefault("mem_init", "zeros");
  const json cutoffs = Either(settings, "cutoffs", "cutoffs");
  const size_t bins = cutoffs.is_array() ? cutoffs.size() + 1 : 4;
  draft.FamilyDefault("tie_projs", TiedProjections(settings, bins));
}

bool HasHead(const NativeCheckpoint& checkpoint) {
  return HasPart(checkpoint, "crit.");
}

}  // namespace

bool MatchesHuggingFace(const NativeCheckpoint& checkpoint) {
  if (HasPart(checkpoint, "transformer.word_emb.emb_layers.")) return true;
  return HasPart(checkpoint, "word_emb.emb_layers.") && !HasHead(checkpoint);
}

absl::StatusOr<ConversionPlan> PlanHuggingFace(const PlanInput& input) {
  const NativeCheckpoint& checkpoint = input.checkpoint;
  if (!HasHead(checkpoint)) {
    return absl::InvalidArgumentError(absl::StrCat(
        checkpoint.path,
        ": is a base model: the output layer (crit.*) is missing"));
  }
  TXL_ASSIGN_OR_RETURN(
      const std::string place,
      PlaceBefore(checkpoint, "transformer.word_emb.emb_layers.0.weight"));
  PlanBuilder builder("huggingface", input, place);
  if (input.own_config.is_null()) {
    builder.Note(
        "no config.json lies beside the weights: what they do not show is the "
        "released model's, or the spec's");
  }
  const json settings = Settings(input.own_config);
  SetDefaults(settings, builder);
  WindowRule rule;
  rule.same_length = true;
  ApplySettings(settings, input.spec, rule, kMemLen, builder);
  PlanKptTrunk("transformer.", builder);
  AdaptiveNames names;
  names.word_emb = "transformer.word_emb.";
  names.reversed_clusters = false;
  PlanAdaptiveHead(names, builder);
  return std::move(builder).Finish();
}

}  // namespace txl
