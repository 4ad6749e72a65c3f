// kimiyoung/transformer-xl in TensorFlow, the released models: variables in
// transformer/, adaptive_embed and adaptive_softmax; clusters in forward order.

#include "model/convert/family/tensorflow.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "model/convert/family/family.h"

namespace txl {
namespace {

// The evaluation's settings of the released models, in the order of tf/sota.
struct Released {
  const char* name;
  int64_t layers, d_model, d_inner, vocabulary;
  int64_t mem_len, clamp_len;
};
constexpr Released kReleased[] = {
    {"enwik8", 24, 1024, 3072, 204, 3800, 1000},
    {"lm1b", 24, 1280, 8192, 793471, 128, -1},
    {"text8", 24, 1024, 3072, 27, 3800, 1000},
    {"wt103", 18, 1024, 4096, 267735, 1600, 1000},
};
// Memory for a model that is none of these.
constexpr int64_t kUnknownMemory = 512;

const Released* Recognise(const TrunkSizes& sizes, int64_t vocabulary) {
  for (const Released& model : kReleased) {
    if (model.layers == sizes.layers && model.d_model == sizes.d_model &&
        model.d_inner == sizes.d_inner && model.vocabulary == vocabulary) {
      return &model;
    }
  }
  return nullptr;
}

// All evaluation scripts of the code set same_length: mem_len keys and the
// token itself.
void PlanMemory(const PlanInput& input, const TrunkSizes& sizes,
                PlanBuilder& builder) {
  ConfigDraft& draft = builder.draft;
  const Released* model = Recognise(sizes, draft.Int("vocab_size", 0));
  if (model != nullptr) {
    const std::string why = absl::StrCat("as tf/sota/", model->name, ".sh");
    AssumeMemory(model->mem_len, why, builder);
    draft.FamilyDefault("clamp_len", model->clamp_len);
  } else {
    AssumeMemory(kUnknownMemory, "assumed for a model that is not in tf/sota",
                 builder);
    draft.FamilyDefault("clamp_len", -1);
  }
  if (!InSpec(input, "window")) {
    draft.FamilyDefault("window", draft.Int("mem_len", 0) + 1);
  }
}

}  // namespace

bool MatchesTensorFlow(const NativeCheckpoint& checkpoint) {
  return checkpoint.tensors.contains("transformer/r_w_bias") &&
         (checkpoint.tensors.contains(
              "transformer/adaptive_embed/lookup_table") ||
          checkpoint.tensors.contains(
              "transformer/adaptive_embed/cutoff_0/lookup_table"));
}

absl::StatusOr<ConversionPlan> PlanTensorFlow(const PlanInput& input) {
  PlanBuilder builder("tensorflow", input, "");
  TrunkSizes sizes;
  if (!ReadTfSizes(builder, sizes)) return builder.table.status();
  std::vector<TfLayerNorms> norms;
  for (int64_t l = 0; l < sizes.layers; ++l) {
    norms.push_back(
        {TfLayer(l) + "rel_attn/LayerNorm", TfLayer(l) + "ff/LayerNorm"});
  }
  PlanTfTrunk(sizes, norms, builder);
  PlanTfAdaptive(sizes.d_model, builder);
  PlanTfFields(builder);
  // tf.contrib.layers.layer_norm.
  builder.draft.FamilyDefault("ln_eps", 1e-12);
  builder.draft.FamilyDefault("ff_out_act", "none");
  PlanMemory(input, sizes, builder);
  IgnoreTfTraining(builder);
  return std::move(builder).Finish();
}

namespace {

constexpr char kEmbed[] = "transformer/adaptive_embed/";
constexpr char kSoftmax[] = "transformer/adaptive_softmax/";

struct Bin {
  int64_t begin = 0, end = 0, width = 0;
  bool projected = false;  // at its input
};

std::string Cutoff(absl::string_view scope, int64_t bin) {
  return absl::StrCat(scope, "cutoff_", bin, "/");
}

// How many bins have a variable: SCOPE/cutoff_0/NAME, SCOPE/cutoff_1/NAME, ...
int64_t CountBins(absl::string_view scope, absl::string_view name,
                  const TensorTable& table) {
  int64_t bins = 0;
  while (table.Has(absl::StrCat(Cutoff(scope, bins), name))) ++bins;
  return bins;
}

StoredTensor Projection(const std::string& name, int64_t width, int64_t d_model,
                        PlanBuilder& builder) {
  return Transposed(builder.table.Take(name, {width, d_model}));
}

// div_val 1: the bins are cuts of one table, as long as their biases.
std::vector<Bin> PlanOneTable(int64_t d_model, PlanBuilder& builder) {
  TensorTable& table = builder.table;
  const std::string name = absl::StrCat(kEmbed, "lookup_table");
  const std::string projection = absl::StrCat(kEmbed, "proj_W");
  const int64_t vocabulary = table.Dim(name, 0), width = table.Dim(name, 1);
  const StoredTensor words = table.Take(name, {vocabulary, width});
  const int64_t cuts = CountBins(kSoftmax, "b", table);
  std::vector<Bin> bins;
  int64_t begin = 0;
  for (int64_t b = 0; b < std::max<int64_t>(cuts, 1); ++b) {
    const int64_t size =
        cuts == 0 ? vocabulary : table.Dim(Cutoff(kSoftmax, b) + "b", 0);
    if (size < 1 || size > vocabulary - begin) {
      table.Fail(absl::StrCat("tensor ", Cutoff(kSoftmax, b),
                              "b has more numbers than ", name,
                              " has rows left"));
      return {};
    }
    bins.push_back({begin, begin + size, width, table.Has(projection)});
    begin += size;
  }
  if (begin != vocabulary) {
    table.Fail(absl::StrCat("tensor ", name, " has ", vocabulary,
                            " rows, the biases of the softmax ", begin));
  }
  if (!table.status().ok()) return {};
  for (size_t b = 0; b < bins.size(); ++b) {
    builder.Add(absl::StrCat("emb.", b, ".w"),
                Rows(words, bins[b].begin, bins[b].end));
    if (!bins[b].projected) continue;
    builder.Add(absl::StrCat("emb.", b, ".proj"),
                Projection(projection, width, d_model, builder));
  }
  return bins;
}

// div_val above 1: each bin has a table and a projection. With
// proj_same_dim=False a bin that is as wide as the model has no projection.
std::vector<Bin> PlanTables(int64_t d_model, PlanBuilder& builder) {
  TensorTable& table = builder.table;
  const int64_t count = CountBins(kEmbed, "lookup_table", table);
  std::vector<Bin> bins;
  int64_t begin = 0;
  for (int64_t b = 0; b < count; ++b) {
    const std::string scope = Cutoff(kEmbed, b);
    const int64_t rows = table.Dim(scope + "lookup_table", 0);
    const int64_t width = table.Dim(scope + "lookup_table", 1);
    constexpr int64_t kMaxVocabulary = int64_t{1} << 30;
    if (rows > kMaxVocabulary || begin > kMaxVocabulary) {
      table.Fail(absl::StrCat("tensor ", scope, "lookup_table has ", rows,
                              " rows, too many"));
      return {};
    }
    bins.push_back({begin, begin + rows, width, table.Has(scope + "proj_W")});
    begin += rows;
    builder.Add(absl::StrCat("emb.", b, ".w"),
                table.Take(scope + "lookup_table", {rows, width}));
    if (!bins.back().projected) continue;
    builder.Add(absl::StrCat("emb.", b, ".proj"),
                Projection(scope + "proj_W", width, d_model, builder));
  }
  return bins;
}

// The divisor that gives the bins' widths, rounded down at each power; 0 when
// there is none.
int64_t DivVal(const std::vector<Bin>& bins) {
  constexpr int64_t kMaxWidth = int64_t{1} << 20;
  if (bins[0].width > kMaxWidth) return 0;
  for (int64_t div = 2; div <= std::max<int64_t>(bins[0].width, 2); ++div) {
    int64_t width = bins[0].width;
    bool fits = true;
    for (size_t b = 1; b < bins.size() && fits; ++b) {
      width /= div;  // floors of floors are floors of the power
      fits = width == bins[b].width;
    }
    if (fits) return div;
  }
  return 0;
}

void PlanHeadBin(int64_t b, bool single, const Bin& bin, int64_t d_model,
                 PlanBuilder& builder, std::vector<bool>& tied) {
  const std::string scope = Cutoff(kSoftmax, b);
  const std::string bias =
      single ? absl::StrCat(kSoftmax, "bias") : scope + "b";
  builder.Add(absl::StrCat("head.", b, ".b"),
              builder.table.Take(bias, {bin.end - bin.begin}));
  const bool own = builder.table.Has(scope + "proj");
  if (own) {
    builder.Add(absl::StrCat("head.", b, ".proj"),
                Projection(scope + "proj", bin.width, d_model, builder));
  }
  tied.push_back(bin.projected && !own);
}

void PlanHead(const std::vector<Bin>& bins, int64_t d_model,
              PlanBuilder& builder) {
  TensorTable& table = builder.table;
  const int64_t count = static_cast<int64_t>(bins.size());
  const bool single = table.Has(absl::StrCat(kSoftmax, "bias"));
  std::vector<bool> tied;
  bool any_projection = false;
  for (int64_t b = 0; b < count; ++b) {
    PlanHeadBin(b, single, bins[b], d_model, builder, tied);
    any_projection = any_projection || bins[b].projected;
  }
  if (any_projection) builder.draft.FromWeights("tie_projs", tied);
  if (count < 2) return;
  const std::string head = Cutoff(kSoftmax, 0);
  builder.Add("head.cluster.w",
              table.Take(head + "cluster_W", {count - 1, bins[0].width}));
  builder.Add("head.cluster.b", table.Take(head + "cluster_b", {count - 1}));
}

}  // namespace

void PlanTfAdaptive(int64_t d_model, PlanBuilder& builder) {
  const bool one_table =
      builder.table.Has(absl::StrCat(kEmbed, "lookup_table"));
  const std::vector<Bin> bins =
      one_table ? PlanOneTable(d_model, builder) : PlanTables(d_model, builder);
  if (!builder.table.status().ok() || bins.empty()) return;
  std::vector<int64_t> cutoffs;
  for (size_t b = 1; b < bins.size(); ++b) cutoffs.push_back(bins[b].begin);
  builder.draft.FromWeights("vocab_size", bins.back().end);
  builder.draft.FromWeights("d_embed", bins[0].width);
  builder.draft.FromWeights("cutoffs", cutoffs);
  builder.draft.FromWeights("emb_proj_bin0",
                            bins[0].projected ? "present" : "absent");
  if (one_table) {
    builder.draft.FromWeights("div_val", 1);
  } else {
    const int64_t div_val = DivVal(bins);
    if (div_val == 0) {
      builder.table.Fail(absl::StrCat("no div_val gives the widths of ", kEmbed,
                                      "cutoff_*/lookup_table"));
    }
    builder.draft.FromWeights("div_val", div_val);
  }
  PlanHead(bins, d_model, builder);
}

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
