#include "model/cuda/step/cuda_embedding.h"

#include <algorithm>
#include <cmath>

namespace txl::cuda {

template <typename T>
CudaEmbedding<T>::CudaEmbedding(const ModelConfig& config,
                                const CudaWeights<T>& weights, int64_t max_rows,
                                CudaProducts& products, Stream& stream)
    : config_(config), weights_(weights), products_(products), stream_(stream) {
  int64_t widest = 0;
  for (const CudaBin<T>& bin : weights.bins) {
    widest = std::max<int64_t>(widest, bin.in_proj.inputs);
  }
  found_ = Array<T>(MemoryKind::kDevice, max_rows * widest);
}

template <typename T>
BinWords<T> CudaEmbedding<T>::Words(int64_t bin, int rows,
                                    const int32_t* tokens) const {
  BinWords<T> words;
  words.rows = rows;
  words.tokens = tokens;
  words.begin = static_cast<int32_t>(config_.bin_begin(bin));
  words.end = static_cast<int32_t>(config_.bin_begin(bin + 1));
  words.table = weights_.bins[bin].table().numbers.data();
  words.stride = weights_.bins[bin].table().inputs;
  return words;
}

// Every bin adds its own words' rows; of the others' it adds zeros. Bins
// without a projection come last: the last addition also scales.
template <typename T>
void CudaEmbedding<T>::Queue(int rows, const FedTokens& tokens, float* wide,
                             T* narrow) {
  const float* sum = nullptr;
  for (int64_t b = 0; b < config_.n_bins(); ++b) {
    const CudaBin<T>& bin = weights_.bins[b];
    if (!bin.in_proj.exists()) continue;
    LaunchFindWords(stream_, Words(b, rows, tokens.ids), found_.data());
    RowProduct<T> project = {bin.in_proj, found_.data()};
    project.residual = sum;
    project.wide = wide;
    products_.Multiply(rows, project);
    sum = wide;
  }
  AddWordsArgs<T> last;
  last.words = {rows, tokens.ids, 0,
                0,    nullptr,    weights_.shape.stride};  // none
  for (int64_t b = 0; b < config_.n_bins(); ++b) {
    if (weights_.bins[b].in_proj.exists()) continue;
    if (last.words.begin < last.words.end) {
      LaunchAddWords<T>(stream_, {last.words, sum, 1, wide, nullptr});
      sum = wide;
    }
    last.words = Words(b, rows, tokens.ids);
  }
  last.add = sum;
  if (config_.scale_embedding) {
    last.scale =
        static_cast<float>(std::sqrt(static_cast<double>(config_.d_model)));
  }
  if (config_.beat_positions.has_value()) {
    last.beats = {*config_.beat_positions, tokens.ticks, weights_.beat.data(),
                  weights_.bar.data()};
  }
  last.wide = wide;
  last.narrow = narrow;
  LaunchAddWords(stream_, last);
}

template class CudaEmbedding<float>;
template class CudaEmbedding<Bf16>;
template class CudaEmbedding<F16>;

}  // namespace txl::cuda
