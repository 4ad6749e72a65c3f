// kimiyoung/transformer-xl in TensorFlow, the released models: variables in
// transformer/, adaptive_embed and adaptive_softmax; clusters in forward order.

#include <string>

#include "absl/strings/str_cat.h"
#include "model/convert/family/families.h"
#include "model/convert/family/tensorflow_adaptive.h"
#include "model/convert/family/tensorflow_trunk.h"

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
    AssumeMemory(kUnknownMemory, "assumed for a model that is none of tf/sota",
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

}  // namespace txl
