#include "model/config/config_keys.h"

#include <cstdint>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/config/json_fields.h"

namespace txl {
namespace {

// Names that people know from training code, whose fields are others.
constexpr std::pair<const char*, const char*> kNamesOfTrainingCode[] = {
    {"same_length", "window"},
    {"n_token", "vocab_size"},
    {"pre_lnorm", "norm"}};

// By the type that a field must have; null is absent.
void CheckTypes(JsonFields& in) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  for (const char* field :
       {"vocab_size", "n_layer", "n_head", "d_head", "d_model", "d_embed",
        "d_inner", "clamp_len", "window", "mem_len", "div_val"}) {
    in.OptionalInt(field, kLeast, kMost);
  }
  for (const char* field : {"ln_eps", "pos_base"}) in.OptionalNumber(field);
  for (const char* field : {"norm", "act", "ff_out_act", "pos", "pos_dtype",
                            "mem_init", "mem_policy", "emb_proj_bin0"}) {
    in.OptionalString(field);
  }
  for (const char* field : {"final_norm", "tie_weight", "head_bias"}) {
    in.Bool(field, false);
  }
  in.IntList("cutoffs", kLeast, kMost);
  in.BoolList("tie_projs");
}

}  // namespace

const std::vector<std::string>& ModelConfigFields() {
  static const std::vector<std::string> fields = {
      "vocab_size", "n_layer",    "n_head",  "d_head",        "d_model",
      "d_embed",    "d_inner",    "norm",    "final_norm",    "ln_eps",
      "act",        "ff_out_act", "pos",     "pos_base",      "pos_dtype",
      "clamp_len",  "window",     "mem_len", "mem_init",      "mem_policy",
      "emb_scale",  "cutoffs",    "div_val", "emb_proj_bin0", "tie_weight",
      "tie_projs",  "head_bias"};
  return fields;
}

absl::Status CheckModelConfigKeys(const nlohmann::json& object,
                                  absl::string_view origin) {
  JsonFields in(object, origin);
  for (const auto& [theirs, ours] : kNamesOfTrainingCode) {
    if (in.Has(theirs)) {
      in.Fail(theirs, absl::StrCat("is unknown; ", ours, " says it"));
    }
  }
  in.RefuseMisspelt(ModelConfigFields());
  CheckTypes(in);
  return in.status();
}

}  // namespace txl
