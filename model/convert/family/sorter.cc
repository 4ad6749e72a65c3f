// augustwester/transformer-xl, the model that sorts digits:
// {"state_dict": ..., "config": an instance of config.Config}.

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "model/convert/family/family.h"
#include "model/convert/family/own_settings.h"
#include "model/convert/family/plan_builder.h"

namespace txl {
namespace {

constexpr char kSorterSignature[] = "layers.0.attn.t";

// u and t are stored as [1, heads, 1, d_head].
StoredTensor SorterHeadBias(const std::string& name, const TrunkSizes& sizes,
                            PlanBuilder& builder) {
  const StoredTensor stored =
      builder.table.Take(name, {1, sizes.heads, 1, sizes.d_head});
  return Squeezed(Squeezed(stored, 2), 0);
}

void PlanSorterLayer(int64_t l, const TrunkSizes& sizes, PlanBuilder& builder) {
  const int64_t d = sizes.d_model, width = sizes.width(), f = sizes.d_inner;
  const std::string attention = absl::StrCat("layers.", l, ".attn.");
  const std::string ff = absl::StrCat("layers.", l, ".pos_ff.");
  const auto add = [&](const char* name, const std::string& native,
                       std::vector<int64_t> shape) {
    builder.AddToLayer(l, name, builder.table.Take(native, std::move(shape)));
  };
  add("wq", attention + "w_q.weight", {width, d});
  add("wk", attention + "w_k.weight", {width, d});
  add("wv", attention + "w_v.weight", {width, d});
  add("wr", attention + "w_r.weight", {width, d});
  add("wo", attention + "mlp.weight", {d, width});
  builder.AddToLayer(l, "u", SorterHeadBias(attention + "u", sizes, builder));
  builder.AddToLayer(l, "v", SorterHeadBias(attention + "t", sizes, builder));
  add("ln1.g", attention + "layer_norm.weight", {d});
  add("ln1.b", attention + "layer_norm.bias", {d});
  add("ff.w1", ff + "net.0.weight", {f, d});
  add("ff.b1", ff + "net.0.bias", {f});
  add("ff.w2", ff + "net.3.weight", {d, f});
  add("ff.b2", ff + "net.3.bias", {d});
  add("ln2.g", ff + "layer_norm.weight", {d});
  add("ln2.b", ff + "layer_norm.bias", {d});
}

// The pickled configuration is the training's, which keeps no memory; eval.py
// then keeps as much as one training segment, 2n - 1 positions for n digits.
void PlanMemory(const nlohmann::json* config, PlanBuilder& builder) {
  const auto read = [&](const char* key) {
    return TypedMember(config, key, SettingType::kInt, "field config.",
                       builder.table);
  };
  const nlohmann::json stored = read("mem_len");
  const nlohmann::json segment = read("seg_len");
  const bool keeps_none = stored.is_discarded() || stored == 0;
  if (!keeps_none) {
    builder.draft.FromCheckpoint("mem_len", stored);
  } else if (segment.is_number_integer()) {
    AssumeMemory(segment.get<int64_t>(),
                 "the seg_len of its configuration, as its eval.py does",
                 builder);
  } else {
    AssumeMemory(39, "2n - 1 for n = 20 digits, as its eval.py does", builder);
  }
}

void PlanFields(const nlohmann::json* config, PlanBuilder& builder) {
  ConfigDraft& draft = builder.draft;
  draft.FromWeights("emb_proj_bin0", "absent");
  draft.FromWeights("tie_weight", false);
  draft.FromWeights("head_bias", true);
  draft.FamilyDefault("norm", "post");
  draft.FamilyDefault("final_norm", false);
  draft.FamilyDefault("ln_eps", 1e-5);
  draft.FamilyDefault("act", "relu");
  draft.FamilyDefault("pos", "sin_interleaved_raw");
  draft.FamilyDefault("window", nullptr);
  draft.FamilyDefault("clamp_len", -1);
  draft.FamilyDefault("mem_init", "empty");
  draft.FamilyDefault("emb_scale", "1");
  PlanMemory(config, builder);
}

}  // namespace

bool MatchesSorter(const NativeCheckpoint& checkpoint) {
  return HasPart(checkpoint, kSorterSignature) &&
         HasPart(checkpoint, "layers.0.attn.w_r.weight");
}

absl::StatusOr<ConversionPlan> PlanSorter(const PlanInput& input) {
  TXL_ASSIGN_OR_RETURN(const std::string place,
                       PlaceBefore(input.checkpoint, kSorterSignature));
  PlanBuilder builder("sorter", input, place);
  TensorTable& table = builder.table;
  const std::string first = "layers.0.attn.u";
  TrunkSizes sizes;
  sizes.layers = table.Count("layers.");
  sizes.heads = table.Dim(first, 1);
  sizes.d_head = table.Dim(first, 3);
  sizes.d_model = table.Dim("embed.weight", 1);
  sizes.d_inner = table.Dim("layers.0.pos_ff.net.0.weight", 0);
  const int64_t vocabulary = table.Dim("embed.weight", 0);
  if (!SetTrunkSizes(sizes, builder)) return table.status();
  builder.draft.FromWeights("vocab_size", vocabulary);
  builder.draft.FromWeights("d_embed", sizes.d_model);
  builder.Add("emb.0.w",
              table.Take("embed.weight", {vocabulary, sizes.d_model}));
  for (int64_t l = 0; l < sizes.layers; ++l) PlanSorterLayer(l, sizes, builder);
  builder.Add("head.0.w",
              table.Take("out_layer.weight", {vocabulary, sizes.d_model}));
  builder.Add("head.0.b", table.Take("out_layer.bias", {vocabulary}));
  const bool in_dictionary = absl::StrContains(place, "state_dict.");
  const absl::string_view root = absl::StripSuffix(place, "state_dict.");
  PlanFields(in_dictionary
                 ? ObjectAt(input.checkpoint.data, absl::StrCat(root, "config"))
                 : nullptr,
             builder);
  return std::move(builder).Finish();
}

}  // namespace txl
