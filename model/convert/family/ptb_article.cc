// The from-scratch article on Penn Treebank: its class TransformerXL, whose
// state dict says no choice but the weights.

#include "absl/strings/str_cat.h"
#include "model/convert/family/adaptive_head.h"
#include "model/convert/family/family.h"
#include "model/convert/family/kimiyoung.h"
#include "model/convert/family/own_settings.h"
#include "model/convert/family/plan_builder.h"

namespace txl {
namespace {

constexpr char kEmbedding[] = "word_embs.embedding.weight";
constexpr int64_t kPtbArticleMemLen =
    512;  // of the article's full configuration

TrunkSizes ReadSizes(PlanBuilder& builder) {
  TensorTable& table = builder.table;
  TrunkSizes sizes;
  sizes.layers = table.Count("layers.");
  sizes.heads = table.Dim("u", 0);
  sizes.d_head = table.Dim("u", 1);
  sizes.d_model = table.Dim("layers.0.mha.linear_q.weight", 1);
  sizes.d_inner = table.Dim("layers.0.ff.ff.0.weight", 0);
  return SetTrunkSizes(sizes, builder) ? sizes : TrunkSizes();
}

void PlanPtbArticleLayer(int64_t l, const TrunkSizes& sizes,
                         PlanBuilder& builder) {
  const int64_t d = sizes.d_model, f = sizes.d_inner;
  const int64_t width = sizes.width();
  const std::string layer = absl::StrCat("layers.", l, ".");
  const auto add = [&](const char* name, const char* native,
                       std::vector<int64_t> shape) {
    builder.AddToLayer(l, name,
                       builder.table.Take(layer + native, std::move(shape)));
  };
  add("wq", "mha.linear_q.weight", {width, d});
  const StoredTensor kv =
      builder.table.Take(layer + "mha.linear_kv.weight", {2 * width, d});
  builder.AddToLayer(l, "wk", Rows(kv, 0, width));
  builder.AddToLayer(l, "wv", Rows(kv, width, 2 * width));
  add("wr", "mha.linear_p.weight", {width, d});
  add("wo", "mha.lout.weight", {d, width});
  builder.AddToLayer(l, "u",
                     builder.table.Take("u", {sizes.heads, sizes.d_head}));
  builder.AddToLayer(l, "v",
                     builder.table.Take("v", {sizes.heads, sizes.d_head}));
  add("ln1.g", "mha.norm.weight", {d});
  add("ln1.b", "mha.norm.bias", {d});
  add("ff.w1", "ff.ff.0.weight", {f, d});
  add("ff.b1", "ff.ff.0.bias", {f});
  add("ff.w2", "ff.ff.3.weight", {d, f});
  add("ff.b2", "ff.ff.3.bias", {d});
  add("ln2.g", "ff.layer_norm.weight", {d});
  add("ln2.b", "ff.layer_norm.bias", {d});
}

}  // namespace

bool MatchesPtbArticle(const NativeCheckpoint& checkpoint) {
  return HasPart(checkpoint, "word_embs.embedding.");
}

absl::StatusOr<ConversionPlan> PlanPtbArticle(const PlanInput& input) {
  TXL_ASSIGN_OR_RETURN(const std::string place,
                       PlaceBefore(input.checkpoint, kEmbedding));
  PlanBuilder builder("ptb-article", input, place);
  builder.Note(
      "the file has no configuration: mem_len is the article's, or the spec's");
  ApplySettings(nlohmann::json::object(), input.spec, {}, kPtbArticleMemLen,
                builder);
  const TrunkSizes sizes = ReadSizes(builder);
  builder.draft.FamilyDefault("pos", "sin_concat");
  for (int64_t l = 0; l < sizes.layers; ++l)
    PlanPtbArticleLayer(l, sizes, builder);
  PlanInverseFrequencies("pos_embs.inv_freq", sizes.d_model, builder);
  PlanPlainHead(
      {kEmbedding, "output_projection.weight", "output_projection.bias"},
      sizes.d_model, builder);
  return std::move(builder).Finish();
}

}  // namespace txl
