// Hugging Face transformers, TransfoXLLMHeadModel: config.json with
// pytorch_model.bin or model.safetensors.

#include <utility>

#include "model/convert/family/adaptive_head.h"
#include "model/convert/family/family.h"
#include "model/convert/family/kimiyoung.h"
#include "model/convert/family/own_settings.h"
#include "model/convert/family/plan_builder.h"

namespace txl {
namespace {

using nlohmann::json;

// Defaults of the configuration class, which are those of the released model.
constexpr int64_t kHuggingfaceMemLen = 1600;
constexpr int64_t kClampLen = 1000;

constexpr char kPlace[] = "config.json: field ";

// tie_projs, or what proj_share_all_but_first makes of it.
json TiedProjections(const json& config, int64_t bins, PlanBuilder& builder) {
  const json share = TypedMember(&config, "proj_share_all_but_first",
                                 SettingType::kFlag, kPlace, builder.table);
  json list = json::array({false});
  while (static_cast<int64_t>(list.size()) < bins) {
    list.push_back(share != false);
  }
  return list;
}

// Bins of the vocabulary, as the weights show.
int64_t BinsOf(TensorTable& table) {
  const bool clusters = table.Has("crit.cluster_weight");
  return clusters ? table.Dim("crit.cluster_weight", 0) + 1 : 1;
}

// The settings under the names of kimiyoung's code.
json Settings(const json& config, TensorTable& table) {
  json settings = json::object();
  OverlaySettings(&config, kPlace, table, settings);
  const auto rename = [&](const char* theirs, SettingType type,
                          const char* name) {
    json value = TypedMember(&config, theirs, type, kPlace, table);
    if (!value.is_discarded()) settings[name] = std::move(value);
  };
  rename("vocab_size", SettingType::kInt, "n_token");
  rename("tie_word_embeddings", SettingType::kFlag, "tie_weight");
  rename("layer_norm_epsilon", SettingType::kNumber, "ln_eps");
  return settings;
}

void SetDefaults(const json& settings, const json& config,
                 PlanBuilder& builder) {
  ConfigDraft& draft = builder.draft;
  const int64_t bins = BinsOf(builder.table);
  const json released = {20000, 40000, 200000};
  if (!config.is_null() || bins == static_cast<int64_t>(released.size()) + 1) {
    draft.FamilyDefault("cutoffs", released);
  }
  draft.FamilyDefault("clamp_len", kClampLen);
  draft.FamilyDefault("tie_weight", true);
  draft.FamilyDefault("mem_init", "zeros");
  if (settings.contains("tie_projs")) return;
  draft.FamilyDefault("tie_projs", TiedProjections(config, bins, builder));
}

// What a conversion without config.json took for it, for a reader.
std::string Guesses(const ConversionPlan& plan) {
  std::string guesses;
  for (const char* field :
       {"mem_len", "window", "clamp_len", "norm", "ln_eps", "cutoffs"}) {
    const auto found = plan.fields.find(field);
    if (found == plan.fields.end() ||
        found->second.origin != FieldOrigin::kFamily) {
      continue;
    }
    absl::StrAppend(&guesses, guesses.empty() ? "" : ", ", field, " ",
                    found->second.value.dump());
  }
  return guesses;
}

// Says in the error or in the plan's notes that there was no config.json.
absl::StatusOr<ConversionPlan> WithoutConfig(
    absl::StatusOr<ConversionPlan> plan) {
  if (!plan.ok()) {
    return absl::Status(
        plan.status().code(),
        absl::StrCat(plan.status().message(),
                     "; no config.json lies beside the weights"));
  }
  const std::string guesses = Guesses(*plan);
  plan->oddities.push_back(absl::StrCat(
      "no config.json lies beside the weights; as of the released model: ",
      guesses.empty() ? "nothing, the spec says all" : guesses));
  return plan;
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
  const json settings = Settings(input.own_config, builder.table);
  SetDefaults(settings, input.own_config, builder);
  WindowRule rule = {.same_length = true};
  ApplySettings(settings, input.spec, rule, kHuggingfaceMemLen, builder);
  PlanKptTrunk("transformer.", builder);
  AdaptiveNames names;
  names.word_emb = "transformer.word_emb.";
  names.reversed_clusters = false;
  PlanAdaptiveHead(names, builder);
  absl::StatusOr<ConversionPlan> plan = std::move(builder).Finish();
  if (input.own_config.is_null()) return WithoutConfig(std::move(plan));
  return plan;
}

}  // namespace txl
