// fastai v1's TransformerXL, and musicautobot's models that are built on it:
// a state dict, or {"model": ..., "opt": ..., "config": ...}.

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "model/convert/family/family.h"
#include "model/convert/family/kimiyoung.h"
#include "model/convert/family/own_settings.h"
#include "model/convert/family/plan_builder.h"

namespace txl {
namespace {

using nlohmann::json;

constexpr char kFastaiSignature[] = "0.encoder.weight";
// mem_len of fastai's tfmerXL_lm_config and of musicautobot's default_config.
constexpr int64_t kFastaiMemory = 150;
constexpr int64_t kMusicMemory = 512;

struct Context {
  const PlanInput& input;
  const json* config;  // of the file, or null
  bool is_music;       // whether beat positions are added to the input
};

// What the file's configuration says, of the type that it must have.
json Configured(const Context& context, const char* key, SettingType type,
                PlanBuilder& builder) {
  return TypedMember(context.config, key, type, "field config.", builder.table);
}

StoredTensor HeadBias(const std::string& name, const TrunkSizes& sizes,
                      PlanBuilder& builder) {
  return Squeezed(builder.table.Take(name, {sizes.heads, 1, sizes.d_head}), 1);
}

// The feed-forward's modules are numbered; a second dropout shifts what is
// behind it by one.
void PlanFeedForward(int64_t l, const TrunkSizes& sizes, PlanBuilder& builder) {
  TensorTable& table = builder.table;
  const int64_t d = sizes.d_model, f = sizes.d_inner;
  const std::string ff = absl::StrCat("0.layers.", l, ".ff.layers.");
  const bool double_drop = table.Has(ff + "3.weight");
  const std::string second = ff + (double_drop ? "3" : "2");
  const std::string norm = ff + (double_drop ? "6" : "5");
  builder.AddToLayer(l, "ff.w1", table.Take(ff + "0.weight", {f, d}));
  builder.AddToLayer(l, "ff.b1", table.Take(ff + "0.bias", {f}));
  builder.AddToLayer(l, "ff.w2", table.Take(second + ".weight", {d, f}));
  builder.AddToLayer(l, "ff.b2", table.Take(second + ".bias", {d}));
  builder.AddToLayer(l, "ln2.g", table.Take(norm + ".weight", {d}));
  builder.AddToLayer(l, "ln2.b", table.Take(norm + ".bias", {d}));
}

void PlanFastaiLayer(int64_t l, const TrunkSizes& sizes, PlanBuilder& builder) {
  TensorTable& table = builder.table;
  const int64_t d = sizes.d_model, width = sizes.width();
  const std::string attention = absl::StrCat("0.layers.", l, ".mhra.");
  const auto add = [&](const char* name, const std::string& native,
                       std::vector<int64_t> shape) {
    builder.AddToLayer(l, name,
                       table.Take(attention + native, std::move(shape)));
  };
  const auto add_if = [&](const char* name, const std::string& native,
                          int64_t size) {
    if (table.Has(attention + native)) add(name, native, {size});
  };
  AddFusedRows(l, {"wq", "wk", "wv"},
               table.Take(attention + "attention.weight", {3 * width, d}),
               builder);
  if (table.Has(attention + "attention.bias")) {
    AddFusedRows(l, {"bq", "bk", "bv"},
                 table.Take(attention + "attention.bias", {3 * width}),
                 builder);
  }
  add("wr", "r_attn.weight", {width, d});
  add_if("br", "r_attn.bias", width);
  add("wo", "out.weight", {d, width});
  add_if("bo", "out.bias", d);
  builder.AddToLayer(l, "u", HeadBias("0.u", sizes, builder));
  builder.AddToLayer(l, "v", HeadBias("0.v", sizes, builder));
  add("ln1.g", "ln.weight", {d});
  add("ln1.b", "ln.bias", {d});
  PlanFeedForward(l, sizes, builder);
}

// The ids of musicautobot's own vocabulary (MusicVocab.create), which its
// checkpoints do not hold: 9 special tokens from xxbos on, xxsep last, 128
// notes, then the durations.
json MusicBeats(int64_t bar_ticks, int64_t bars) {
  return {{"separator", 8}, {"duration0", 9 + 128},   {"mask", 4},
          {"restart", 0},   {"bar_ticks", bar_ticks}, {"bars", bars}};
}

// Embeddings of beat and bar are added to the input of musicautobot's models.
// Without encode_position the original leaves them out.
void PlanBeatPositions(const Context& context, int64_t d_model,
                       PlanBuilder& builder) {
  json encode =
      TypedMember(&context.input.spec, "encode_position", SettingType::kFlag,
                  "the spec's field ", builder.table);
  if (encode.is_discarded()) {
    encode =
        Configured(context, "encode_position", SettingType::kFlag, builder);
  }
  if (encode == false) {
    if (!context.is_music) return;
    builder.table.IgnorePrefix("0.beat_enc.");
    builder.Note("encode_position is false: 0.beat_enc.* is left out");
    return;
  }
  // The class's default is true; fastai's own models have no such thing.
  if (!context.is_music && encode != true) return;
  const StoredTensor beat =
      builder.table.Take("0.beat_enc.beat_enc.weight", {-1, d_model});
  const StoredTensor bar =
      builder.table.Take("0.beat_enc.bar_enc.weight", {-1, d_model});
  builder.Add("emb.beat", beat);
  builder.Add("emb.bar", bar);
  if (!builder.draft.Get("beat_positions").is_null()) return;
  builder.draft.FamilyDefault("beat_positions",
                              MusicBeats(beat.shape[0], bar.shape[0]));
  builder.Note(
      "beat_positions: the ids are those of musicautobot's own vocabulary");
}

// The enumeration Activation of fastai: 'ReLU Swish GeLU', from 1 on; also its
// name, as a configuration in JSON has it.
void PlanActivation(const Context& context, PlanBuilder& builder) {
  ConfigDraft& draft = builder.draft;
  if (!draft.Get("act").is_null()) return;
  const json act = Member(context.config, "act");
  if (act.is_discarded()) {
    const char* assumed = context.is_music ? "gelu_tanh" : "relu";
    draft.FamilyDefault("act", assumed);
    builder.Note(absl::StrCat("act is not in the checkpoint: ", assumed,
                              ", the default of ",
                              context.is_music ? "musicautobot" : "fastai"));
    return;
  }
  const json args = Member(&act, kArgsKey);
  const json value = args.is_array() && args.size() == 1 ? args[0] : act;
  if (value == 1 || value == "ReLU") {
    draft.FromCheckpoint("act", "relu");
  } else if (value == 3 || value == "GeLU") {
    draft.FromCheckpoint("act", "gelu_tanh");
  } else {
    builder.table.Fail(
        "field config.act: only ReLU and GeLU are supported, not Swish");
  }
}

void PlanFields(const Context& context, PlanBuilder& builder) {
  ConfigDraft& draft = builder.draft;
  if (Configured(context, "mask", SettingType::kFlag, builder) == false) {
    builder.table.Fail(
        "field config.mask is false: the model looks into the future");
  }
  draft.FromWeights("pos", "sin_concat");
  draft.FromWeights("emb_proj_bin0", "absent");
  draft.FamilyDefault("norm", "post");
  draft.FamilyDefault("final_norm", false);
  draft.FamilyDefault("ln_eps", 1e-5);
  draft.FamilyDefault("window", nullptr);
  draft.FamilyDefault("clamp_len", -1);
  draft.FamilyDefault("mem_init", "empty");
  draft.FamilyDefault("emb_scale", "1");
  draft.FromCheckpoint(
      "mem_len", Configured(context, "mem_len", SettingType::kInt, builder));
  AssumeMemory(context.is_music ? kMusicMemory : kFastaiMemory,
               "the default of its code", builder);
  PlanActivation(context, builder);
}

void PlanHead(int64_t vocabulary, int64_t d_model, const Context& context,
              PlanBuilder& builder) {
  TensorTable& table = builder.table;
  builder.draft.FromCheckpoint(
      "tie_weight",
      Configured(context, "tie_weights", SettingType::kFlag, builder));
  const json tie = builder.draft.Get("tie_weight");
  const std::optional<bool> configured =
      tie.is_boolean() ? std::optional<bool>(tie.get<bool>()) : std::nullopt;
  const bool tied =
      IsTied(builder, "1.decoder.weight", kFastaiSignature, configured);
  builder.draft.FromWeights("tie_weight", tied);
  if (!tied) {
    builder.Add("head.0.w",
                table.Take("1.decoder.weight", {vocabulary, d_model}));
  }
  const bool has_bias = table.Has("1.decoder.bias");
  builder.draft.FromWeights("head_bias", has_bias);
  if (has_bias) {
    builder.Add("head.0.b", table.Take("1.decoder.bias", {vocabulary}));
  }
}

}  // namespace

bool MatchesFastai(const NativeCheckpoint& checkpoint) {
  return HasPart(checkpoint, kFastaiSignature) &&
         HasPart(checkpoint, "0.layers.0.mhra.r_attn.weight");
}

absl::StatusOr<ConversionPlan> PlanFastai(const PlanInput& input) {
  TXL_ASSIGN_OR_RETURN(const std::string place,
                       PlaceBefore(input.checkpoint, kFastaiSignature));
  PlanBuilder builder("fastai", input, place);
  TensorTable& table = builder.table;
  const absl::string_view root = absl::StripSuffix(place, "model.");
  const json* config =
      root.size() < place.size()
          ? ObjectAt(input.checkpoint.data, absl::StrCat(root, "config"))
          : nullptr;
  const Context context = {input, config,
                           table.Has("0.beat_enc.beat_enc.weight")};
  TrunkSizes sizes;
  sizes.layers = table.Count("0.layers.");
  sizes.heads = table.Dim("0.u", 0);
  sizes.d_head = table.Dim("0.u", 2);
  sizes.d_model = table.Dim(kFastaiSignature, 1);
  sizes.d_inner = table.Dim("0.layers.0.ff.layers.0.weight", 0);
  const int64_t vocabulary = table.Dim(kFastaiSignature, 0);
  if (!SetTrunkSizes(sizes, builder)) return table.status();
  PlanBeatPositions(context, sizes.d_model, builder);
  builder.draft.FromWeights("vocab_size", vocabulary);
  builder.draft.FromWeights("d_embed", sizes.d_model);
  builder.Add("emb.0.w",
              table.Take(kFastaiSignature, {vocabulary, sizes.d_model}));
  for (int64_t l = 0; l < sizes.layers; ++l) PlanFastaiLayer(l, sizes, builder);
  PlanInverseFrequencies("0.pos_enc.freq", sizes.d_model, builder);
  PlanHead(vocabulary, sizes.d_model, context, builder);
  PlanFields(context, builder);
  return std::move(builder).Finish();
}

}  // namespace txl
