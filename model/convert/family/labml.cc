// labml.ai's annotated Transformer-XL: the state dict of AutoregressiveModel,
// as one torch file or one .npy file per tensor.

#include <string>

#include "absl/strings/str_cat.h"
#include "model/convert/family/family.h"
#include "model/convert/family/plan_builder.h"

namespace txl {
namespace {

constexpr char kTransformer[] = "transformer.";
constexpr char kLabmlSignature[] =
    "transformer.layers.0.self_attn.key_pos_embeddings";
// mem_len of its experiment.
constexpr int64_t kExperimentMemory = 32;

std::string Layer(int64_t l) {
  return absl::StrCat(kTransformer, "layers.", l, ".");
}

// Tables of 2P rows, row P - k for distance k; rows above P are of keys in the
// future, which a causal model never looks at.
void PlanTables(int64_t l, const TrunkSizes& sizes, int64_t rows,
                PlanBuilder& builder) {
  const std::string attention = Layer(l) + "self_attn.";
  const StoredTensor vectors = builder.table.Take(
      attention + "key_pos_embeddings", {rows, sizes.heads, sizes.d_head});
  const StoredTensor scalars =
      builder.table.Take(attention + "key_pos_bias", {rows, sizes.heads});
  builder.AddToLayer(l, "rel_t", FlippedRows(Rows(vectors, 0, rows / 2 + 1)));
  builder.AddToLayer(l, "rel_s", FlippedRows(Rows(scalars, 0, rows / 2 + 1)));
}

void PlanLabmlLayer(int64_t l, const TrunkSizes& sizes, PlanBuilder& builder) {
  const int64_t d = sizes.d_model, width = sizes.width(), f = sizes.d_inner;
  const std::string attention = Layer(l) + "self_attn.";
  const std::string ff = Layer(l) + "feed_forward.";
  const auto add = [&](const char* name, const std::string& native,
                       std::vector<int64_t> shape) {
    builder.AddToLayer(l, name, builder.table.Take(native, std::move(shape)));
  };
  add("wq", attention + "query.linear.weight", {width, d});
  add("wk", attention + "key.linear.weight", {width, d});
  add("wv", attention + "value.linear.weight", {width, d});
  add("bv", attention + "value.linear.bias", {width});
  add("wo", attention + "output.weight", {d, width});
  add("bo", attention + "output.bias", {d});
  add("u", attention + "query_pos_bias", {sizes.heads, sizes.d_head});
  add("ln1.g", Layer(l) + "norm_self_attn.weight", {d});
  add("ln1.b", Layer(l) + "norm_self_attn.bias", {d});
  add("ff.w1", ff + "layer1.weight", {f, d});
  add("ff.b1", ff + "layer1.bias", {f});
  add("ff.w2", ff + "layer2.weight", {d, f});
  add("ff.b2", ff + "layer2.bias", {d});
  add("ln2.g", Layer(l) + "norm_ff.weight", {d});
  add("ln2.b", Layer(l) + "norm_ff.bias", {d});
}

void PlanLabmlFields(PlanBuilder& builder) {
  ConfigDraft& draft = builder.draft;
  draft.FromWeights("pos", "table");
  draft.FromWeights("final_norm", true);
  draft.FromWeights("emb_proj_bin0", "absent");
  draft.FromWeights("tie_weight", false);
  draft.FromWeights("head_bias", true);
  draft.FamilyDefault("norm", "pre");
  draft.FamilyDefault("ln_eps", 1e-5);
  draft.FamilyDefault("act", "relu");
  draft.FamilyDefault("window", nullptr);
  draft.FamilyDefault("clamp_len", -1);
  draft.FamilyDefault("mem_init", "empty");
  draft.FamilyDefault("emb_scale", "1");
  AssumeMemory(kExperimentMemory, "as its experiment sets it", builder);
}

}  // namespace

bool MatchesLabml(const NativeCheckpoint& checkpoint) {
  return HasPart(checkpoint, kLabmlSignature) &&
         HasPart(checkpoint, "src_embed.weight");
}

absl::StatusOr<ConversionPlan> PlanLabml(const PlanInput& input) {
  TXL_ASSIGN_OR_RETURN(const std::string place,
                       PlaceBefore(input.checkpoint, kLabmlSignature));
  PlanBuilder builder("labml", input, place);
  TensorTable& table = builder.table;
  const std::string u = Layer(0) + "self_attn.query_pos_bias";
  TrunkSizes sizes;
  sizes.layers = table.Count(absl::StrCat(kTransformer, "layers."));
  sizes.heads = table.Dim(u, 0);
  sizes.d_head = table.Dim(u, 1);
  sizes.d_model = table.Dim("src_embed.weight", 1);
  sizes.d_inner = table.Dim(Layer(0) + "feed_forward.layer1.weight", 0);
  const int64_t vocabulary = table.Dim("src_embed.weight", 0);
  const int64_t rows = table.Dim(kLabmlSignature, 0);
  if (rows < 2 || rows % 2 != 0) {
    table.Fail(absl::StrCat("tensor ", kLabmlSignature, " has ", rows,
                            " rows, must have two for each distance"));
  }
  if (!SetTrunkSizes(sizes, builder)) return table.status();
  const int64_t d = sizes.d_model;
  builder.draft.FromWeights("vocab_size", vocabulary);
  builder.draft.FromWeights("d_embed", d);
  builder.Add("emb.0.w", table.Take("src_embed.weight", {vocabulary, d}));
  for (int64_t l = 0; l < sizes.layers; ++l) {
    PlanLabmlLayer(l, sizes, builder);
    PlanTables(l, sizes, rows, builder);
  }
  builder.Add("final.g", table.Take("transformer.norm.weight", {d}));
  builder.Add("final.b", table.Take("transformer.norm.bias", {d}));
  builder.Add("head.0.w", table.Take("generator.weight", {vocabulary, d}));
  builder.Add("head.0.b", table.Take("generator.bias", {vocabulary}));
  PlanLabmlFields(builder);
  return std::move(builder).Finish();
}

}  // namespace txl
