#pragma once

// The trained weights as the native CPU step reads them: packed once at load,
// tied ones once in memory.

#include <cstdint>
#include <optional>
#include <vector>

#include "model/config/model_config.h"
#include "model/cpu/aligned_buffer.h"
#include "model/cpu/attention_form.h"
#include "model/cpu/packed_matrix.h"

namespace txl {

struct Weights;

// How the native step keeps its numbers. Sums are float32 but for integer
// products.
struct NativeFormats {
  // Matrices and embeddings. kInt4: those of the layers, others as BinFormat
  // says.
  NumberFormat weights = NumberFormat::kF32;
  // Products of rows with weights, except for keys and values in the absorbed
  // form, which are short. kInteger needs int8 or int4 weights.
  Products products = Products::kFloat;
  // Stored rows: the segment memory. kInt8: a scale per row.
  NumberFormat memory = NumberFormat::kF32;
  // Keys, values and positional keys. kInt8: a scale per row and head, and
  // integer products.
  NumberFormat derived = NumberFormat::kF32;
  // Nothing: the cheaper one, ChooseForm.
  std::optional<AttentionForm> form;
};

// How words, clusters and their projections are kept where matrices of layers
// are in this format: an embedding has no sum over it in which errors of 4 bits
// would even out.
constexpr NumberFormat BinFormat(NumberFormat weights) {
  return weights == NumberFormat::kInt4 ? NumberFormat::kInt8 : weights;
}

// formats.form, or the model's cheaper one.
AttentionForm ResolveForm(const ModelConfig& config,
                          const NativeFormats& formats);

struct NativeNorm {
  AlignedBuffer<float> g, b;  // [RoundUp(d, kPanel)]
};

struct NativeLayer {
  PackedMatrix wq;          // [HD, d]
  AlignedBuffer<float> bq;  // [RoundUp(HD, kPanel)] or empty
  // Projected form.
  PackedMatrix wkv;          // [2 HD, d]: K rows, V rows
  AlignedBuffer<float> bkv;  // [RoundUp(2 HD, kPanel)] or empty
  // Absorbed form, per head.
  std::vector<PackedMatrix> absorbed_keys;    // Wk_n turned: [d, D]
  std::vector<PackedMatrix> absorbed_values;  // Wv_n: [D, d]
  AlignedBuffer<float> value_bias;            // [HD] or empty
  PackedMatrix wo;                            // [d, HD]
  AlignedBuffer<float> bo;
  AlignedBuffer<float> u, v;  // [HD]; v empty for position tables
  // Positional keys Wr_n R (or T_n), distances descending: per head a packed
  // matrix [RoundUp(columns, kPanel), D] whose output i is distance
  // outputs - 1 - i; farther distances than stored ones are zeros.
  std::vector<PackedMatrix> position_keys;
  AlignedBuffer<float> position_bias;  // [H, outputs], same order; or empty
  NativeNorm ln1, ln2;
  PackedMatrix ff_w1, ff_w2;
  AlignedBuffer<float> ff_b1, ff_b2;
};

struct NativeBin {
  // Words of the bin and, in bin 0, the clusters after them.
  PackedMatrix words;         // [n_b (+ C), e_b]
  AlignedBuffer<float> bias;  // [RoundUp(outputs, kPanel)] or empty
  PackedMatrix out_proj;      // [e_b, d]; no outputs: none
  PackedMatrix in_proj;       // [d, e_b]; no outputs: none
  // Embedding rows [n_b, e_b] of an untied model; no outputs: rows of `words`.
  PackedMatrix embedding;
};

struct NativeWeights {
  std::vector<NativeLayer> layers;
  std::vector<NativeBin> bins;
  // [bar_ticks, d], [bars, d], in float32 whatever the format; empty: none.
  AlignedBuffer<float> beat, bar;
  std::optional<NativeNorm> final_norm;
  int64_t distances = 0;  // with their own positional key: 0..distances-1
};

// REQUIRES: weights are float32 on the CPU and fit config.
NativeWeights PackWeights(const ModelConfig& config, const Weights& weights,
                          const NativeFormats& formats);

// The weights with those numbers rounded that PackWeights keeps in 4 bits; the
// other tensors are shared. What a plain step is given that a native one is
// compared with.
Weights RoundedWeights(const ModelConfig& config, const Weights& weights,
                       const NativeFormats& formats);

}  // namespace txl
