#include "tests/model/step/faulty_model.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/roll.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace txl {
namespace {

constexpr const char* kModelFaultNames[] = {
    "TermMissing", "SwappedHeads", "WrongScale",  "NextDistance",
    "ShortWindow", "DroppedBias",  "DroppedNorm", "TransposedMatrix",
    "OtherLayer",  "RowOfZeros",   "ContentBias", "ClusterRolled"};

at::Tensor HeadsSwapped(const at::Tensor& w, int64_t head_width) {
  return at::cat({w.narrow(0, head_width, head_width),
                  w.narrow(0, 0, head_width),
                  w.narrow(0, 2 * head_width, w.size(0) - 2 * head_width)});
}

// With the new matrix distance k has what distance k + 1 had with the old one:
// sin((k + 1) f) = sin(k f) cos f + cos(k f) sin f, and likewise its cosine.
at::Tensor OfNextDistance(const at::Tensor& wr, double base) {
  const int64_t half = wr.size(1) / 2;
  const at::Tensor f =
      (at::arange(half, at::kDouble) * (-2.0 * std::log(base) / wr.size(1)))
          .exp()
          .to(wr.scalar_type());
  const at::Tensor sines = wr.narrow(1, 0, half);
  const at::Tensor cosines = wr.narrow(1, half, half);
  return at::cat({sines * f.cos() - cosines * f.sin(),
                  sines * f.sin() + cosines * f.cos()},
                 1);
}

void TurnSquare(LayerWeights& layer) {
  if (layer.wv.size(0) == layer.wv.size(1)) {
    layer.wv = layer.wv.t().contiguous();
    return;
  }
  const int64_t side = std::min(layer.wv.size(0), layer.wv.size(1));
  layer.wv = layer.wv.clone();
  at::Tensor square = layer.wv.narrow(0, 0, side).narrow(1, 0, side);
  square.copy_(square.t().clone());
}

// What a kernel does wrongly in one layer it does in all of them.
void Change(const ModelConfig& config, ModelFault fault, LayerWeights& layer) {
  switch (fault) {
    case ModelFault::kTermMissing:
      layer.wq = layer.wq.clone();
      layer.wq.narrow(1, config.d_model * 3 / 4, config.d_model / 4).zero_();
      break;
    case ModelFault::kSwappedHeads:
      layer.wk = HeadsSwapped(layer.wk, config.d_head);
      break;
    case ModelFault::kWrongScale:
      layer.wq = layer.wq * 1.5;
      break;
    case ModelFault::kNextDistance:
      layer.wr = OfNextDistance(layer.wr, config.pos_base);
      break;
    case ModelFault::kDroppedBias:
      layer.ff_b1 = at::zeros_like(layer.ff_b1);
      break;
    case ModelFault::kDroppedNormBias:
      layer.ln2_b = at::zeros_like(layer.ln2_b);
      break;
    case ModelFault::kTransposedMatrix:
      TurnSquare(layer);
      break;
    case ModelFault::kRowOfZeros:
      layer.ff_w2 = layer.ff_w2.clone();
      layer.ff_w2[config.d_model - 1].zero_();
      break;
    case ModelFault::kContentBias:
      std::swap(layer.u, layer.v);
      break;
    default:  // is not about a layer
      break;
  }
}

}  // namespace

std::vector<ModelFault> AllModelFaults() {
  std::vector<ModelFault> faults;
  for (int i = 0; i <= static_cast<int>(kLastModelFault); ++i) {
    faults.push_back(static_cast<ModelFault>(i));
  }
  return faults;
}

const char* NameOf(ModelFault fault) {
  return kModelFaultNames[static_cast<int>(fault)];
}

FaultyModel MakeFaultyModel(const ModelConfig& config, const Weights& weights,
                            ModelFault fault) {
  FaultyModel model = {config, weights};
  for (LayerWeights& layer : model.weights.layers) Change(config, fault, layer);
  if (fault == ModelFault::kShortWindow) {
    model.config.window = config.serving_window() - 1;
  }
  if (fault == ModelFault::kOtherLayer) {
    model.weights.layers.back().wo = model.weights.layers.front().wo;
  }
  if (fault == ModelFault::kClusterRolled) {
    model.weights.head.back().w = at::roll(weights.head.back().w, 1, 0);
    // A tied one has its words in both places.
    if (config.tie_weight) {
      model.weights.embedding.back().w = model.weights.head.back().w;
    }
  }
  return model;
}

}  // namespace txl
