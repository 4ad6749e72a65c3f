// kimiyoung/transformer-xl, pytorch/: modules pickled whole, state dicts, and
// the checkpoints of NVIDIA's release of 2019, which has the same names and
// arithmetic.

#include "model/convert/family/kimiyoung.h"

#include "absl/strings/str_cat.h"
#include "model/convert/family/adaptive_head.h"
#include "model/convert/family/family.h"
#include "model/convert/family/own_settings.h"
#include "model/convert/family/plan_builder.h"

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

// NVIDIA DeepLearningExamples, PyTorch/LanguageModeling/Transformer-XL, from
// February 2020 on.

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
  WindowRule rule = {.beyond_mem_len = 1};
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

namespace {

std::string Attention(const std::string& prefix, int64_t layer) {
  return absl::StrCat(prefix, "layers.", layer, ".dec_attn.");
}

TrunkSizes ReadSizes(const std::string& prefix, PlanBuilder& builder) {
  TensorTable& table = builder.table;
  const std::string layer = Attention(prefix, 0);
  std::string bias = prefix + "r_w_bias";
  if (!table.Has(bias)) bias = layer + "r_w_bias";
  const int64_t dims = table.Dims(bias);
  TrunkSizes sizes;
  sizes.layers = table.Count(prefix + "layers.");
  sizes.heads = table.Dim(bias, dims - 2);
  sizes.d_head = table.Dim(bias, dims - 1);
  sizes.d_model = table.Dim(layer + "qkv_net.weight", 1);
  sizes.d_inner = table.Dim(prefix + "layers.0.pos_ff.CoreNet.0.weight", 0);
  return SetTrunkSizes(sizes, builder) ? sizes : TrunkSizes();
}

void PlanKptTrunkLayer(const std::string& prefix, int64_t l,
                       const TrunkSizes& sizes, PlanBuilder& builder) {
  TensorTable& table = builder.table;
  const int64_t d = sizes.d_model, width = sizes.width(), f = sizes.d_inner;
  const std::string attention = Attention(prefix, l);
  const std::string ff = absl::StrCat(prefix, "layers.", l, ".pos_ff.");
  const StoredTensor qkv =
      table.Take(attention + "qkv_net.weight", {3 * width, d});
  builder.AddToLayer(l, "wq", Rows(qkv, 0, width));
  builder.AddToLayer(l, "wk", Rows(qkv, width, 2 * width));
  builder.AddToLayer(l, "wv", Rows(qkv, 2 * width, 3 * width));
  const auto add = [&](const char* name, const std::string& native,
                       std::vector<int64_t> shape) {
    builder.AddToLayer(l, name, table.Take(native, std::move(shape)));
  };
  add("wo", attention + "o_net.weight", {d, width});
  add("ln1.g", attention + "layer_norm.weight", {d});
  add("ln1.b", attention + "layer_norm.bias", {d});
  add("ff.w1", ff + "CoreNet.0.weight", {f, d});
  add("ff.b1", ff + "CoreNet.0.bias", {f});
  add("ff.w2", ff + "CoreNet.3.weight", {d, f});
  add("ff.b2", ff + "CoreNet.3.bias", {d});
  add("ln2.g", ff + "layer_norm.weight", {d});
  add("ln2.b", ff + "layer_norm.bias", {d});
}

// u or v of a layer: its own tensor, or the one of all layers.
StoredTensor LayerBias(const std::string& prefix, int64_t l, const char* name,
                       const TrunkSizes& sizes, PlanBuilder& builder) {
  TensorTable& table = builder.table;
  const std::vector<int64_t> shape = {sizes.heads, sizes.d_head};
  const std::string own = Attention(prefix, l) + name, all = prefix + name;
  if (!table.Has(all)) return table.Take(own, shape);
  if (table.Has(own)) IsTied(builder, own, all, true);
  return table.Take(all, shape);
}

void PlanSinusoids(const std::string& prefix, const TrunkSizes& sizes,
                   PlanBuilder& builder) {
  TensorTable& table = builder.table;
  builder.draft.FromWeights("pos", "sin_concat");
  for (int64_t l = 0; l < sizes.layers; ++l) {
    builder.AddToLayer(l, "wr",
                       table.Take(Attention(prefix, l) + "r_net.weight",
                                  {sizes.width(), sizes.d_model}));
    builder.AddToLayer(l, "u",
                       LayerBias(prefix, l, "r_w_bias", sizes, builder));
    builder.AddToLayer(l, "v",
                       LayerBias(prefix, l, "r_r_bias", sizes, builder));
  }
  PlanInverseFrequencies(prefix + "pos_emb.inv_freq", sizes.d_model, builder);
}

// Row k of the native tables is distance rows - 1 - k.
void PlanTables(const std::string& prefix, const TrunkSizes& sizes,
                PlanBuilder& builder) {
  TensorTable& table = builder.table;
  const int64_t layers = sizes.layers;
  const int64_t rows = table.Dim(prefix + "r_emb", 1);
  const StoredTensor vectors =
      table.Take(prefix + "r_emb", {layers, rows, sizes.heads, sizes.d_head});
  const StoredTensor scalars =
      table.Take(prefix + "r_bias", {layers, rows, sizes.heads});
  const StoredTensor u =
      table.Take(prefix + "r_w_bias", {layers, sizes.heads, sizes.d_head});
  if (!table.status().ok()) return;
  builder.draft.FromWeights("pos", "table");
  for (int64_t l = 0; l < layers; ++l) {
    builder.AddToLayer(l, "rel_t", FlippedRows(At(vectors, l)));
    builder.AddToLayer(l, "rel_s", FlippedRows(At(scalars, l)));
    builder.AddToLayer(l, "u", At(u, l));
  }
}

}  // namespace

void PlanInverseFrequencies(const std::string& name, int64_t d_model,
                            PlanBuilder& builder) {
  if (!builder.table.Has(name)) return;
  StoredTensor frequencies = builder.table.Take(name, {d_model / 2});
  if (frequencies.dtype == DType::kF16 || frequencies.dtype == DType::kBF16) {
    builder.Note(absl::StrCat(name,
                              " is rounded to 16 bits: the frequencies are "
                              "computed again in 32 bits"));
    return;
  }
  builder.Add("pos.inv_freq", std::move(frequencies));
}

void PlanKptTrunk(const std::string& prefix, PlanBuilder& builder) {
  if (builder.table.Has(Attention(prefix, 0) + "q_net.weight")) {
    builder.table.Fail(
        "attn_type 2 and 3 (absolute positions) are not supported");
  }
  const TrunkSizes sizes = ReadSizes(prefix, builder);
  for (int64_t l = 0; l < sizes.layers; ++l) {
    PlanKptTrunkLayer(prefix, l, sizes, builder);
  }
  if (builder.table.Has(prefix + "r_emb")) {
    PlanTables(prefix, sizes, builder);
  } else {
    PlanSinusoids(prefix, sizes, builder);
  }
}

}  // namespace txl
