#include "model/convert/family/tensorflow_trunk.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace txl {
namespace {

// A kernel [in, out] as the matrix [out, in].
StoredTensor Matrix(const std::string& name, int64_t out, int64_t in,
                    PlanBuilder& builder) {
  return Transposed(builder.table.Take(name, {in, out}));
}

void PlanTensorflowTrunkLayer(int64_t l, const TrunkSizes& sizes,
                              const TfLayerNorms& norms, PlanBuilder& builder) {
  const int64_t d = sizes.d_model, width = sizes.width(), f = sizes.d_inner;
  const std::string attention = TfLayer(l) + "rel_attn/";
  const std::string ff = TfLayer(l) + "ff/";
  const auto vector = [&](const char* name, const std::string& native,
                          int64_t size) {
    builder.AddToLayer(l, name, builder.table.Take(native, {size}));
  };
  AddFusedRows(l, {"wq", "wk", "wv"},
               Matrix(attention + "qkv/kernel", 3 * width, d, builder),
               builder);
  builder.AddToLayer(l, "wr",
                     Matrix(attention + "r/kernel", width, d, builder));
  builder.AddToLayer(l, "wo",
                     Matrix(attention + "o/kernel", d, width, builder));
  vector("ln1.g", norms.attention + "/gamma", d);
  vector("ln1.b", norms.attention + "/beta", d);
  builder.AddToLayer(l, "ff.w1", Matrix(ff + "layer_1/kernel", f, d, builder));
  vector("ff.b1", ff + "layer_1/bias", f);
  builder.AddToLayer(l, "ff.w2", Matrix(ff + "layer_2/kernel", d, f, builder));
  vector("ff.b2", ff + "layer_2/bias", d);
  vector("ln2.g", norms.feed_forward + "/gamma", d);
  vector("ln2.b", norms.feed_forward + "/beta", d);
}

// u or v: one for all layers, or (untie_r) stacked.
void PlanHeadBias(const std::string& canonical, const std::string& native,
                  const TrunkSizes& sizes, PlanBuilder& builder) {
  TensorTable& table = builder.table;
  const bool stacked = table.Dims(native) == 3;
  std::vector<int64_t> shape = {sizes.heads, sizes.d_head};
  if (stacked) shape.insert(shape.begin(), sizes.layers);
  const StoredTensor stored = table.Take(native, shape);
  for (int64_t l = 0; l < sizes.layers; ++l) {
    builder.AddToLayer(l, canonical, stacked ? At(stored, l) : stored);
  }
}

}  // namespace

std::string TfLayer(int64_t layer) {
  return absl::StrCat(kTfScope, "layer_", layer, "/");
}

bool ReadTfSizes(PlanBuilder& builder, TrunkSizes& sizes) {
  TensorTable& table = builder.table;
  const std::string u = absl::StrCat(kTfScope, "r_w_bias");
  const bool stacked = table.Dims(u) == 3;
  sizes.heads = table.Dim(u, stacked ? 1 : 0);
  sizes.d_head = table.Dim(u, stacked ? 2 : 1);
  while (table.Has(TfLayer(sizes.layers) + "rel_attn/qkv/kernel")) {
    ++sizes.layers;
  }
  sizes.d_model = table.Dim(TfLayer(0) + "rel_attn/qkv/kernel", 0);
  sizes.d_inner = table.Dim(TfLayer(0) + "ff/layer_1/kernel", 1);
  return SetTrunkSizes(sizes, builder);
}

void PlanTfTrunk(const TrunkSizes& sizes,
                 const std::vector<TfLayerNorms>& norms, PlanBuilder& builder) {
  for (int64_t l = 0; l < sizes.layers; ++l) {
    PlanTensorflowTrunkLayer(l, sizes, norms[l], builder);
  }
  PlanHeadBias("u", absl::StrCat(kTfScope, "r_w_bias"), sizes, builder);
  PlanHeadBias("v", absl::StrCat(kTfScope, "r_r_bias"), sizes, builder);
}

void IgnoreTfTraining(PlanBuilder& builder) {
  TensorTable& table = builder.table;
  for (const std::string& name : table.Unused()) {
    const size_t slash = name.rfind('/');
    const bool is_slot =
        slash != std::string::npos && table.Has(name.substr(0, slash));
    if (is_slot || !absl::StartsWith(name, kTfScope)) table.Ignore(name);
  }
}

void PlanTfFields(PlanBuilder& builder) {
  ConfigDraft& draft = builder.draft;
  draft.FromWeights("pos", "sin_concat");
  draft.FromWeights("tie_weight", true);
  draft.FromWeights("head_bias", true);
  draft.FamilyDefault("norm", "post");
  draft.FamilyDefault("final_norm", false);
  draft.FamilyDefault("act", "relu");
  draft.FamilyDefault("mem_init", "zeros");
  draft.FamilyDefault("emb_scale", "sqrt_d");
}

}  // namespace txl
