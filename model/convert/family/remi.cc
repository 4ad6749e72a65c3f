// REMI (YatingMusic/remi) and Jazz Transformer: kimiyoung's TensorFlow model
// with Keras layers. LayerNormalization is numbered by Keras through the whole
// graph, and the feed-forward's second layer has a ReLU as well.

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "model/convert/family/adaptive_head.h"
#include "model/convert/family/family.h"
#include "model/convert/family/kimiyoung.h"
#include "model/convert/family/own_settings.h"
#include "model/convert/family/plan_builder.h"
#include "model/convert/family/tensorflow.h"

namespace txl {
namespace {

constexpr char kTable[] = "transformer/normal_embed/lookup_table";
constexpr char kProjection[] = "transformer/normal_embed/proj_W";
constexpr char kBias[] = "transformer/normal_softmax/bias";
constexpr char kNorm[] = "layer_normalization";
constexpr int64_t kMemory = 512;  // of all published models

// The number Keras gave: 0 for "SCOPE/layer_normalization", n for
// "SCOPE/layer_normalization_n"; nothing for other names.
std::optional<int64_t> NormNumber(absl::string_view name) {
  const size_t slash = name.rfind('/');
  if (slash != absl::string_view::npos) name.remove_prefix(slash + 1);
  if (!absl::ConsumePrefix(&name, kNorm)) return std::nullopt;
  if (name.empty()) return 0;
  int64_t number = 0;
  if (!absl::ConsumePrefix(&name, "_") || !absl::SimpleAtoi(name, &number)) {
    return std::nullopt;
  }
  return number;
}

// The layers' norms: attention and feed-forward of layer 0, of layer 1, ... in
// the order of Keras' numbers, which may start anywhere. Whether their scopes
// name the layer depends on the version of TensorFlow.
std::vector<TfLayerNorms> FindNorms(const TrunkSizes& sizes,
                                    PlanBuilder& builder) {
  std::vector<std::pair<int64_t, std::string>> found;
  for (const std::string& name : builder.table.Unused()) {
    absl::string_view norm = name;
    if (!absl::ConsumeSuffix(&norm, "/gamma")) continue;
    const std::optional<int64_t> number = NormNumber(norm);
    if (number.has_value()) found.emplace_back(*number, std::string(norm));
  }
  std::sort(found.begin(), found.end());
  if (static_cast<int64_t>(found.size()) != 2 * sizes.layers) {
    builder.table.Fail(absl::StrCat("holds ", found.size(), " of ", kNorm,
                                    "*/gamma, must hold 2 for each of ",
                                    sizes.layers, " layers"));
    return {};
  }
  std::vector<TfLayerNorms> norms;
  for (int64_t l = 0; l < sizes.layers; ++l) {
    norms.push_back({found[2 * l].second, found[2 * l + 1].second});
  }
  return norms;
}

// A norm whose scope names a layer must be that layer's.
void CheckScopes(const std::vector<TfLayerNorms>& norms, PlanBuilder& builder) {
  const auto check = [&](const std::string& norm, const std::string& scope) {
    const bool in_a_layer =
        absl::StartsWith(norm, absl::StrCat(kTfScope, "layer_")) &&
        !absl::StartsWith(norm, absl::StrCat(kTfScope, kNorm));
    if (in_a_layer && !absl::StartsWith(norm, scope)) {
      builder.table.Fail(absl::StrCat("tensor ", norm, "/gamma should be in ",
                                      scope, " by its number"));
    }
  };
  for (size_t l = 0; l < norms.size(); ++l) {
    const int64_t layer = static_cast<int64_t>(l);
    check(norms[l].attention, TfLayer(layer) + "rel_attn/");
    check(norms[l].feed_forward, TfLayer(layer) + "ff/");
  }
}

void PlanWords(int64_t d_model, PlanBuilder& builder) {
  TensorTable& table = builder.table;
  const int64_t vocabulary = table.Dim(kTable, 0);
  const int64_t width = table.Dim(kTable, 1);
  builder.draft.FromWeights("vocab_size", vocabulary);
  builder.draft.FromWeights("d_embed", width);
  builder.Add("emb.0.w", table.Take(kTable, {vocabulary, width}));
  builder.Add("head.0.b", table.Take(kBias, {vocabulary}));
  const bool projected = table.Has(kProjection);
  builder.draft.FromWeights("emb_proj_bin0", projected ? "present" : "absent");
  if (!projected) return;
  builder.Add("emb.0.proj",
              Transposed(table.Take(kProjection, {width, d_model})));
  builder.draft.FromWeights("tie_projs", std::vector<bool>{true});
}

void PlanRemiFields(PlanBuilder& builder) {
  ConfigDraft& draft = builder.draft;
  PlanTfFields(builder);
  draft.FamilyDefault("ln_eps", 1e-3);  // of Keras
  draft.FamilyDefault("ff_out_act", "relu");
  draft.FamilyDefault("window", nullptr);
  draft.FamilyDefault("clamp_len", -1);
  AssumeMemory(kMemory, "as its code sets it", builder);
}

}  // namespace

bool MatchesRemi(const NativeCheckpoint& checkpoint) {
  return checkpoint.tensors.contains(kTable) &&
         checkpoint.tensors.contains("transformer/r_w_bias");
}

absl::StatusOr<ConversionPlan> PlanRemi(const PlanInput& input) {
  PlanBuilder builder("remi", input, "");
  TrunkSizes sizes;
  if (!ReadTfSizes(builder, sizes)) return builder.table.status();
  const std::vector<TfLayerNorms> norms = FindNorms(sizes, builder);
  CheckScopes(norms, builder);
  if (!builder.table.status().ok()) return builder.table.status();
  PlanTfTrunk(sizes, norms, builder);
  PlanWords(sizes.d_model, builder);
  PlanRemiFields(builder);
  IgnoreTfTraining(builder);
  return std::move(builder).Finish();
}

// YatingMusic/compound-word-transformer, workspace/uncond/remi-xl: kimiyoung's
// layers between a plain embedding and a plain output matrix.

namespace {

constexpr char kRemiEmbedding[] = "word_emb.lut.weight";
constexpr int64_t kCompoundWordMemLen = 512;  // of its config.yml

}  // namespace

bool MatchesCompoundWord(const NativeCheckpoint& checkpoint) {
  return HasPart(checkpoint, "word_emb.lut.");
}

absl::StatusOr<ConversionPlan> PlanCompoundWord(const PlanInput& input) {
  TXL_ASSIGN_OR_RETURN(const std::string place,
                       PlaceBefore(input.checkpoint, kRemiEmbedding));
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
  WindowRule rule = {.same_length = true};
  ApplySettings(settings, input.spec, rule, kCompoundWordMemLen, builder);
  PlanKptTrunk("", builder);
  PlanPlainHead({kRemiEmbedding, "linear_proj.weight", "linear_proj.bias"},
                builder.draft.Int("d_model", 0), builder);
  return std::move(builder).Finish();
}

}  // namespace txl
