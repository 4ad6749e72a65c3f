#pragma once

// The trained weights as LibTorch tensors on one device in one dtype. Tied
// tensors share storage.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "model/checkpoint/safetensors.h"
#include "model/config/model_config.h"

namespace txl {

// Undefined tensors (`!t.defined()`) are parts that the model does not have.
struct LayerWeights {
  at::Tensor wq, wk, wv, wr;  // [H*D, d]; wr undefined for position tables
  at::Tensor wo;              // [d, H*D]
  at::Tensor bq, bk, bv, br;  // [H*D]
  at::Tensor bo;              // [d]
  at::Tensor u, v;            // [H, D]; v undefined for position tables
  at::Tensor rel_t;           // [rows, H, D], row = distance
  at::Tensor rel_s;           // [rows, H]
  at::Tensor ln1_g, ln1_b, ln2_g, ln2_b;  // [d]
  at::Tensor ff_w1, ff_b1;                // [F, d], [F]
  at::Tensor ff_w2, ff_b2;                // [d, F], [d]
};

struct EmbeddingBin {
  at::Tensor w;     // [n_b, e_b]
  at::Tensor proj;  // [d, e_b]; undefined: none
};

struct HeadBin {
  at::Tensor w;     // [n_b, e_b]
  at::Tensor b;     // [n_b]; undefined: no bias
  at::Tensor proj;  // [d, e_b]; undefined: none
};

struct Weights {
  std::vector<EmbeddingBin> embedding;  // one per bin
  at::Tensor beat, bar;  // [bar_ticks, d], [bars, d]; undefined: none
  std::vector<LayerWeights> layers;
  at::Tensor final_g, final_b;  // [d]; undefined: no final norm
  std::vector<HeadBin> head;    // one per bin
  at::Tensor cluster_w;         // [C, e] forward order: row b-1 = bin b
  at::Tensor cluster_b;         // [C]
  at::Tensor inv_freq;          // [d/2], of the file, or undefined

  // Every defined tensor under its canonical name; tied ones once under each
  // name. The handles alias the members.
  std::vector<std::pair<std::string, at::Tensor>> Named() const;
  // Bytes of unique storage.
  int64_t Bytes() const;
};

struct LoadOptions {
  at::ScalarType dtype = at::kFloat;  // kFloat or kDouble
  at::Device device = at::kCPU;
  // On the CPU, tensors that the file has in this dtype are views of the file:
  // read-only, and right only while the file is not changed in place. For a
  // step that packs weights of its own.
  bool mapped = false;
};

// Loads DIR/model.safetensors. Errors as CheckCanonicalTensors, and
// InvalidArgument naming a tensor with a non-finite value.
absl::StatusOr<Weights> LoadWeights(const ModelConfig& config,
                                    const std::string& path,
                                    const LoadOptions& options);

// Weights with storage of their own; tied tensors share it again.
Weights CopyOf(const Weights& weights);

// Fresh weights for training or benchmarks: normal(0, stddev), norms at (1, 0),
// biases 0; the same for the same seed.
Weights RandomWeights(const ModelConfig& config, double stddev, uint64_t seed,
                      const LoadOptions& options);

// Writes model.safetensors; tied tensors are left out. `dtype`: kFloat, kHalf,
// kBFloat16 or kDouble.
absl::Status SaveWeights(const Weights& weights, const ModelConfig& config,
                         const std::string& path, at::ScalarType dtype);

// What steps want of the weights that they are made from. Errors are
// InvalidArgument and name the weights.

// Refuses other numbers of layers and bins than `config` has.
absl::Status CheckCounts(const Weights& weights, const ModelConfig& config);

// That, and float32 on the CPU, from where a step packs its own. `step`: whose
// weights they are to be, as in "the CUDA step".
absl::Status CheckFloat32OnCpu(const Weights& weights,
                               const ModelConfig& config,
                               absl::string_view step);

// What the head computes for a bin: its words and, in bin 0, the clusters
// behind them.
struct BinOutputs {
  at::Tensor words;  // [outputs, e_b]
  at::Tensor bias;   // [outputs]; undefined: none
};
BinOutputs OutputsOfBin(const ModelConfig& config, const Weights& weights,
                        int64_t bin);

// Sets how often an adaptive softmax meets a tail, for models with random
// weights that stand for trained ones in benchmarks: every cluster's bias
// becomes one value, so that the head's softmax gives all clusters together
// about `share` of the probability. Of n_0 words and C clusters with equal
// logits, bias b gives them C e^b / (n_0 + C e^b), which is solved for b. Words
// keep their biases; RandomWeights makes those 0. Errors: InvalidArgument when
// share is not in (0, 1) or there is no tail.
absl::Status SetTailShare(double share, Weights& weights);

}  // namespace txl
