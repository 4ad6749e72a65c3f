#include "tests/model/cuda/step/random_case.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <random>

namespace txl {
namespace {

// One of the values.
template <typename T>
T Pick(std::mt19937& random, std::vector<T> values) {
  return values[random() % values.size()];
}

int64_t Between(std::mt19937& random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random() % (high - low + 1));
}

bool Coin(std::mt19937& random) { return random() % 2 == 0; }

void AddBins(std::mt19937& random, ModelConfig& config) {
  config.tie_weight = Coin(random);
  config.emb_proj_bin0 = config.d_embed != config.d_model || Coin(random);
  if (Coin(random)) return;
  config.vocab_size = 90;
  config.cutoffs = {20, 50};
  config.div_val = Pick<int64_t>(random, {1, 2, 3});
  config.tie_projs = {false, Coin(random), Coin(random)};
}

// The optional biases, and noise where RandomWeights has zeros and ones.
void AddNoise(std::mt19937& random, const ModelConfig& config,
              at::Generator& generator, Weights& weights) {
  const auto noise = [&](at::IntArrayRef sizes) {
    return at::zeros(sizes).normal_(0, 0.3, generator);
  };
  const int64_t width = config.n_head * config.d_head;
  const bool query = Coin(random);
  const bool value = Coin(random);
  const bool out = Coin(random);
  for (LayerWeights& layer : weights.layers) {
    if (query) layer.bq = noise({width});
    if (query) layer.bk = noise({width});  // drops out of the softmax
    if (value) layer.bv = noise({width});
    if (out) layer.bo = noise({config.d_model});
  }
  for (auto& [name, tensor] : weights.Named()) {
    if (tensor.dim() == 1 && name != "pos.inv_freq") {
      tensor.add_(noise(tensor.sizes()));
    }
  }
}

}  // namespace

ModelConfig RandomConfig(uint32_t seed) {
  std::mt19937 random(seed);
  ModelConfig config;
  config.vocab_size = Between(random, 11, 70);
  config.n_layer = 2;
  config.n_head = Between(random, 1, 5);
  config.d_head = Between(random, 3, 21);
  config.d_model = 2 * Between(random, 16, 48);
  config.d_embed = Coin(random) ? config.d_model : Between(random, 16, 40);
  config.d_inner = Between(random, 20, 100);
  config.norm = Coin(random) ? NormPlacement::kPre : NormPlacement::kPost;
  config.final_norm = Coin(random);
  config.act = Coin(random) ? Activation::kRelu : Activation::kGeluTanh;
  if (random() % 4 == 0) config.ff_out_act = Activation::kRelu;
  config.pos = Pick<PositionKind>(
      random, {PositionKind::kSinConcat, PositionKind::kSinInterleavedRaw,
               PositionKind::kTable});
  config.mem_len = Between(random, 0, 50);
  if (Coin(random)) config.clamp_len = Between(random, 1, config.mem_len + 2);
  if (Coin(random)) config.window = Between(random, 1, config.mem_len + 1);
  config.mem_init = Coin(random) ? MemoryInit::kZeros : MemoryInit::kEmpty;
  config.scale_embedding = Coin(random);
  config.head_bias = Coin(random);
  AddBins(random, config);
  if (seed % 3 == 1) config.beat_positions = BeatPositions{1, 6, 4, 5, 4, 3};
  return config;
}

RandomCase CaseOf(const ModelConfig& config, uint32_t seed, int64_t length) {
  std::mt19937 random(seed + 1);
  RandomCase out;
  out.config = config;
  // Scores of order 1, so that the softmax is neither flat nor one key.
  out.weights = RandomWeights(config, 0.12, seed, {});
  at::Generator generator = at::detail::createCPUGenerator(seed);
  AddNoise(random, config, generator, out.weights);
  for (int64_t t = 0; t < length; ++t) {
    out.tokens.push_back(static_cast<int32_t>(random() % config.vocab_size));
  }
  return out;
}

RandomCase MakeRandomCase(uint32_t seed) {
  const ModelConfig config = RandomConfig(seed);
  return CaseOf(config, seed, config.mem_len + 60);
}

RandomCase PromiseCase() {
  ModelConfig config;
  config.vocab_size = 60;
  config.n_layer = 2;
  config.n_head = 3;
  config.d_head = 11;
  config.d_model = 42;
  config.d_embed = 42;
  config.d_inner = 50;
  config.norm = NormPlacement::kPre;
  config.final_norm = true;
  config.mem_len = 21;
  config.mem_init = MemoryInit::kZeros;
  config.cutoffs = {20, 41};
  config.div_val = 2;
  config.tie_weight = true;
  config.emb_proj_bin0 = false;
  config.tie_projs = {false, true, false};
  config.beat_positions = BeatPositions{1, 6, 4, 5, 4, 3};
  return CaseOf(config, 5, 70);
}

std::string RandomCase::Describe() const { return ModelConfigToJson(config); }

}  // namespace txl
