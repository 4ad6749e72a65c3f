// Embeddings of every bin's words, next to an independent sum in double.

#include "model/cuda/step/cuda_embedding.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <vector>

#include "tests/model/cuda/device_data.h"
#include "tests/model/cuda/step/random_case.h"

namespace txl::cuda {
namespace {

constexpr int kEmbeddedRows = 6;

// Bins of words 0..19, 20..49 and 50..89; `div_val` and `bin0` decide which of
// them are projected.
RandomCase Case(int64_t div_val, std::optional<bool> bin0, bool tied) {
  ModelConfig config;
  config.vocab_size = 90;
  config.n_layer = 1;
  config.n_head = 1;
  config.d_head = 8;
  config.d_model = 70;
  config.d_embed = 70;
  config.d_inner = 8;
  config.cutoffs = {20, 50};
  config.div_val = div_val;
  config.emb_proj_bin0 = bin0;
  config.tie_weight = tied;
  config.tie_projs = {false, false, false};
  config.scale_embedding = tied;
  return CaseOf(config, 4, 1);
}

// Number k of the embedding of a token.
double Expected(const RandomCase& model, int32_t token, int64_t k) {
  const ModelConfig& config = model.config;
  int64_t bin = 0;
  while (token >= config.bin_begin(bin + 1)) ++bin;
  const EmbeddingBin& embedding = model.weights.embedding[bin];
  const at::Tensor row =
      embedding.w[token - config.bin_begin(bin)].to(at::kDouble);
  const double number =
      embedding.proj.defined()
          ? (embedding.proj[k].to(at::kDouble) * row).sum().item<double>()
          : row[k].item<double>();
  return number * (config.scale_embedding ? std::sqrt(70.0) : 1);
}

// What the row gets of beat and bar.
const std::vector<int32_t> kTicks = {0, 3, 5, 6, 11, 14};
double Beats(const RandomCase& model, int row, int64_t k) {
  if (!model.config.beat_positions.has_value()) return 0;
  const std::vector<int> beats = {0, 3, 1, 2, 3, 2};
  const std::vector<int> bars = {0, 0, 1, 1, 2, 0};
  return model.weights.beat[beats[row]][k].item<double>() +
         model.weights.bar[bars[row]][k].item<double>();
}

// Of 6 rows, in both outputs: numbers, and zeros behind them.
void Check(const RandomCase& model) {
  // The first and the last word of every bin.
  const std::vector<int32_t> tokens = {49, 0, 89, 19, 50, 20};
  const auto weights = UploadWeights<float>(model.config, model.weights);
  Stream stream;
  CudaProducts products(stream, 4, MostSums(weights, {16}, 4));
  CudaEmbedding<float> embedding(model.config, weights, 16, products, stream);
  const Array<int32_t> tokens_there = ToDevice(tokens);
  const Array<float> wide = Unwritten<float>(16 * 128);
  const Array<float> narrow = Unwritten<float>(16 * 128);
  const Array<int32_t> ticks_there = ToDevice(kTicks);
  embedding.Queue(kEmbeddedRows, {tokens_there.data(), ticks_there.data()},
                  wide.data(), narrow.data());
  stream.Wait();
  const std::vector<float> found = ToHost(wide);
  const std::vector<float> rounded = ToHost(narrow);
  for (int i = 0; i < kEmbeddedRows * 128; ++i) {
    const double expected = i % 128 < 70
                                ? Expected(model, tokens[i / 128], i % 128) +
                                      Beats(model, i / 128, i % 128)
                                : 0;
    EXPECT_NEAR(found[i], expected, 1e-5) << "row " << i / 128;
    EXPECT_EQ(rounded[i], found[i]);
  }
}

TEST(CudaEmbeddingTest, NoBinIsProjected) { Check(Case(1, false, false)); }

TEST(CudaEmbeddingTest, AllBinsAreProjected) {
  Check(Case(1, true, true));
  Check(Case(3, true, false));
}

TEST(CudaEmbeddingTest, AllBinsButTheFirstAreProjected) {
  Check(Case(2, false, true));
}

TEST(CudaEmbeddingTest, BeatAndBarAreAddedToWordsOfEveryBin) {
  for (const bool tied : {false, true}) {
    ModelConfig config = Case(2, false, tied).config;
    config.beat_positions = BeatPositions{1, 9, 4, 5, 4, 3};
    Check(CaseOf(config, 4, 1));
  }
}

}  // namespace
}  // namespace txl::cuda
