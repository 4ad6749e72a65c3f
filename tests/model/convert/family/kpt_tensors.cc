#include "tests/model/convert/family/kpt_tensors.h"

#include "absl/strings/str_cat.h"

namespace txl {
namespace {

// Gives every tensor numbers of its own.
class Numbering {
 public:
  StoredTensor operator()(std::vector<int64_t> shape) {
    StoredTensor tensor = CountingTensor(std::move(shape), next_);
    next_ += static_cast<float>(tensor.numel());
    return tensor;
  }

 private:
  float next_ = 1;
};

}  // namespace

TensorMap KptTrunkTensors(const KptShape& s, const std::string& prefix) {
  Numbering number;
  TensorMap out;
  const int64_t width = s.heads * s.d_head;
  out[prefix + "r_w_bias"] = number({s.heads, s.d_head});
  out[prefix + "r_r_bias"] = number({s.heads, s.d_head});
  for (int64_t l = 0; l < s.layers; ++l) {
    const std::string layer = absl::StrCat(prefix, "layers.", l, ".");
    out[layer + "dec_attn.qkv_net.weight"] = number({3 * width, s.d_model});
    out[layer + "dec_attn.r_net.weight"] = number({width, s.d_model});
    out[layer + "dec_attn.o_net.weight"] = number({s.d_model, width});
    out[layer + "dec_attn.layer_norm.weight"] = number({s.d_model});
    out[layer + "dec_attn.layer_norm.bias"] = number({s.d_model});
    out[layer + "pos_ff.CoreNet.0.weight"] = number({s.d_inner, s.d_model});
    out[layer + "pos_ff.CoreNet.0.bias"] = number({s.d_inner});
    out[layer + "pos_ff.CoreNet.3.weight"] = number({s.d_model, s.d_inner});
    out[layer + "pos_ff.CoreNet.3.bias"] = number({s.d_model});
    out[layer + "pos_ff.layer_norm.weight"] = number({s.d_model});
    out[layer + "pos_ff.layer_norm.bias"] = number({s.d_model});
  }
  out[prefix + "pos_emb.inv_freq"] = number({s.d_model / 2});
  return out;
}

TensorMap KptHeadTensors(const KptShape& s, const std::string& prefix) {
  Numbering number;
  TensorMap out;
  std::vector<int64_t> ends = s.cutoffs;
  ends.push_back(s.vocab);
  const int64_t bins = static_cast<int64_t>(ends.size());
  const int64_t tables = s.div_val == 1 ? 1 : bins;
  const bool projected = s.div_val > 1 || s.d_embed != s.d_model;
  int64_t width = s.d_embed;
  for (int64_t t = 0; t < tables; ++t) {
    const int64_t begin = t == 0 ? 0 : ends[t - 1];
    const int64_t rows = tables == 1 ? s.vocab : ends[t] - begin;
    const std::string name =
        absl::StrCat(prefix, "word_emb.emb_layers.", t, ".weight");
    out[name] = number({rows, width});
    out[absl::StrCat("crit.out_layers.", t, ".weight")] = out[name];
    out[absl::StrCat("crit.out_layers.", t, ".bias")] = number({rows});
    if (projected) {
      out[absl::StrCat(prefix, "word_emb.emb_projs.", t)] =
          number({s.d_model, width});
    }
    width /= s.div_val;
  }
  width = s.d_embed;
  for (int64_t b = 0; projected && b < bins; ++b) {
    const bool tied = !s.tie_projs.empty() && s.tie_projs[b];
    const int64_t table = tables == 1 ? 0 : b;
    out[absl::StrCat("crit.out_projs.", b)] =
        tied ? out[absl::StrCat(prefix, "word_emb.emb_projs.", table)]
             : number({s.d_model, width});
    width /= s.div_val;
  }
  if (bins > 1) {
    out["crit.cluster_weight"] = number({bins - 1, s.d_embed});
    out["crit.cluster_bias"] = number({bins - 1});
  }
  return out;
}

TensorMap KptTensors(const KptShape& shape) {
  TensorMap out = KptTrunkTensors(shape, "");
  out.merge(KptHeadTensors(shape, ""));
  return out;
}

StoredTensor CopyOf(const StoredTensor& tensor) {
  return FloatTensor(tensor.shape, FloatsOf(tensor));
}

std::vector<float> ValuesOf(const ConversionPlan& plan,
                            const std::string& name) {
  std::vector<float> values;
  for (const StoredTensor& piece : plan.tensors.at(name).pieces) {
    const std::vector<float> more = FloatsOf(piece);
    values.insert(values.end(), more.begin(), more.end());
  }
  return values;
}

}  // namespace txl
