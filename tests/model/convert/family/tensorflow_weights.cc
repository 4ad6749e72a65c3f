#include "tests/model/convert/family/tensorflow_weights.h"

#include "absl/strings/str_cat.h"

namespace txl {

std::map<std::string, Values> TensorFlowTrunk(
    const GoldenWeights& golden, bool untie_r,
    const std::vector<std::string>& norms) {
  std::map<std::string, Values> out;
  std::vector<Values> u, v;
  for (int64_t l = 0; l < golden.layers(); ++l) {
    const std::string layer = absl::StrCat("transformer/layer_", l, "/");
    const auto kernel = [&](const std::string& native, const Values& matrix) {
      out[layer + native + "/kernel"] = TransposedValues(matrix);
    };
    const auto norm = [&](const std::string& native, const std::string& name) {
      out[native + "/gamma"] = golden.layer(l, name + ".g");
      out[native + "/beta"] = golden.layer(l, name + ".b");
    };
    kernel("rel_attn/qkv",
           BelowEachOther({golden.layer(l, "wq"), golden.layer(l, "wk"),
                           golden.layer(l, "wv")}));
    kernel("rel_attn/r", golden.layer(l, "wr"));
    kernel("rel_attn/o", golden.layer(l, "wo"));
    kernel("ff/layer_1", golden.layer(l, "ff.w1"));
    kernel("ff/layer_2", golden.layer(l, "ff.w2"));
    out[layer + "ff/layer_1/bias"] = golden.layer(l, "ff.b1");
    out[layer + "ff/layer_2/bias"] = golden.layer(l, "ff.b2");
    norm(norms.at(2 * l), "ln1");
    norm(norms.at(2 * l + 1), "ln2");
    const auto& shape = golden.layer(l, "u").shape;
    u.push_back(Reshaped(golden.layer(l, "u"), {1, shape[0], shape[1]}));
    v.push_back(Reshaped(golden.layer(l, "v"), {1, shape[0], shape[1]}));
  }
  out["transformer/r_w_bias"] =
      untie_r ? BelowEachOther(u) : golden.layer(0, "u");
  out["transformer/r_r_bias"] =
      untie_r ? BelowEachOther(v) : golden.layer(0, "v");
  return out;
}

std::vector<std::string> ContribNorms(const GoldenWeights& golden) {
  std::vector<std::string> norms;
  for (int64_t l = 0; l < golden.layers(); ++l) {
    const std::string layer = absl::StrCat("transformer/layer_", l, "/");
    norms.push_back(layer + "rel_attn/LayerNorm");
    norms.push_back(layer + "ff/LayerNorm");
  }
  return norms;
}

void AddTrainingState(std::map<std::string, Values>& variables) {
  const std::map<std::string, Values> model = variables;
  for (const auto& [name, values] : model) {
    variables[name + "/Adam"] = values;
    variables[name + "/Adam_1"] = values;
  }
  variables["global_step"] = {{}, {400000}};
  variables["beta1_power"] = {{}, {0}};
  variables["beta2_power"] = {{}, {0}};
}

NativeCheckpoint TensorFlowCheckpoint(
    const std::map<std::string, Values>& variables) {
  NativeCheckpoint checkpoint = Checkpoint(variables);
  checkpoint.container = "tensorflow checkpoint";
  checkpoint.data = nullptr;
  return checkpoint;
}

}  // namespace txl
