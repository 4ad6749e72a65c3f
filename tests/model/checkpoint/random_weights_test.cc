#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>

#include <map>
#include <string>

#include "gtest/gtest.h"
#include "model/checkpoint/weights.h"
#include "tests/model/checkpoint/raw_safetensors.h"

namespace txl {
namespace {

using Named = std::map<std::string, at::Tensor>;

ModelConfig Wide() {
  ModelConfig config;
  config.vocab_size = 500;
  config.n_layer = 2;
  config.n_head = 4;
  config.d_head = 10;
  config.d_model = 48;
  config.d_embed = 48;
  config.d_inner = 96;
  config.mem_len = 6;
  config.cutoffs = {100, 300};
  config.div_val = 4;
  config.emb_proj_bin0 = true;
  config.tie_weight = true;
  config.tie_projs = {false, true, true};
  config.final_norm = true;
  return config;
}

Named Make(const ModelConfig& config, double stddev, uint64_t seed,
           const LoadOptions& options = {}) {
  Named named;
  for (const auto& [name, tensor] :
       RandomWeights(config, stddev, seed, options).Named()) {
    named[name] = tensor;
  }
  return named;
}

TEST(RandomWeights, TheSameSeedGivesTheSameBits) {
  const Named a = Make(Wide(), 0.02, 7);
  const Named b = Make(Wide(), 0.02, 7);
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, tensor] : a) {
    EXPECT_TRUE(at::equal(tensor, b.at(name))) << name;
  }
}

TEST(RandomWeights, AnotherSeedGivesOtherWeights) {
  const Named a = Make(Wide(), 0.02, 7);
  const Named b = Make(Wide(), 0.02, 8);
  for (const char* name : {"emb.0.w", "layer.0.wq", "layer.1.u"}) {
    EXPECT_FALSE(at::equal(a.at(name), b.at(name))) << name;
  }
}

TEST(RandomWeights, TheTypeChangesNoNumber) {
  const Named narrow = Make(Wide(), 0.02, 7);
  const Named wide = Make(Wide(), 0.02, 7, {.dtype = at::kDouble});
  for (const auto& [name, tensor] : wide) {
    EXPECT_EQ(tensor.scalar_type(), at::kDouble) << name;
    EXPECT_TRUE(at::equal(tensor, narrow.at(name).to(at::kDouble))) << name;
  }
}

TEST(RandomWeights, TensorsOfALayerDiffer) {
  const Named named = Make(Wide(), 0.02, 7);
  EXPECT_FALSE(at::equal(named.at("layer.0.wq"), named.at("layer.0.wk")));
  EXPECT_FALSE(at::equal(named.at("layer.0.wq"), named.at("layer.1.wq")));
}

TEST(RandomWeights, NormsStartAtOneAndBiasesAtZero) {
  const Named named = Make(Wide(), 0.02, 7);
  for (const char* name : {"layer.0.ln1.g", "layer.1.ln2.g", "final.g"}) {
    EXPECT_TRUE(at::equal(named.at(name), at::ones({48}))) << name;
  }
  for (const char* name :
       {"layer.0.ln1.b", "layer.1.ln2.b", "final.b", "layer.0.ff.b1",
        "layer.0.ff.b2", "head.0.b", "head.2.b", "head.cluster.b"}) {
    EXPECT_EQ(named.at(name).abs().max().item<float>(), 0) << name;
  }
}

TEST(RandomWeights, MatricesAreNormalWithTheGivenDeviation) {
  const Named named = Make(Wide(), 0.02, 7);
  for (const char* name : {"emb.0.w", "emb.1.w", "layer.0.wq", "layer.1.wo",
                           "layer.0.ff.w1", "layer.1.ff.w2", "head.0.proj"}) {
    const at::Tensor& tensor = named.at(name);
    const auto count = static_cast<double>(tensor.numel());
    const double mean = tensor.mean(at::kDouble).item<double>();
    const double variance = tensor.to(at::kDouble).pow(2).mean().item<double>();
    // Five standard errors of the two estimates.
    EXPECT_LT(std::abs(mean), 5 * 0.02 / std::sqrt(count)) << name;
    EXPECT_NEAR(variance, 4e-4, 5 * 4e-4 * std::sqrt(2 / count)) << name;
  }
}

TEST(RandomWeights, TiedTensorsShareStorage) {
  const Weights weights = RandomWeights(Wide(), 0.02, 7, {});
  EXPECT_TRUE(weights.head[1].w.is_same(weights.embedding[1].w));
  EXPECT_TRUE(weights.head[2].proj.is_same(weights.embedding[2].proj));
  EXPECT_NE(weights.head[0].proj.data_ptr(),
            weights.embedding[0].proj.data_ptr());
}

TEST(RandomWeights, FrequenciesAreLeftToTheFormula) {
  EXPECT_FALSE(RandomWeights(Wide(), 0.02, 7, {}).inv_freq.defined());
}

TEST(RandomWeights, APositionTableReachesAsFarAsAServedQueryLooks) {
  ModelConfig config = Wide();
  config.pos = PositionKind::kTable;
  const Weights weights = RandomWeights(config, 0.02, 7, {});
  EXPECT_EQ(weights.layers[1].rel_t.sizes().vec(),
            (std::vector<int64_t>{7, 4, 10}));
  EXPECT_EQ(weights.layers[1].rel_s.sizes().vec(),
            (std::vector<int64_t>{7, 4}));
  EXPECT_FALSE(weights.layers[1].wr.defined());
  EXPECT_FALSE(weights.layers[1].v.defined());
}

TEST(RandomWeights, AreWhatALoaderAccepts) {
  for (const PositionKind pos : {PositionKind::kSinConcat, PositionKind::kTable,
                                 PositionKind::kSinInterleavedRaw}) {
    ModelConfig config = Wide();
    config.pos = pos;
    const std::string path = FreshTempFolder("saved") + "/model.safetensors";
    const Weights weights = RandomWeights(config, 0.02, 3, {});
    ASSERT_TRUE(SaveWeights(weights, config, path, at::kFloat).ok());
    const auto loaded = LoadWeights(config, path, {});
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    const auto expected = weights.Named();
    const auto named = loaded->Named();
    ASSERT_EQ(named.size(), expected.size());
    for (size_t i = 0; i < named.size(); ++i) {
      EXPECT_EQ(named[i].first, expected[i].first);
      EXPECT_TRUE(at::equal(named[i].second, expected[i].second))
          << named[i].first;
    }
  }
}

}  // namespace
}  // namespace txl
