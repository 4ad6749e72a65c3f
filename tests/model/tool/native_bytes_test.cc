#include "model/tool/native_bytes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "model/base/number_format.h"
#include "model/checkpoint/weights.h"
#include "model/cpu/attention_form.h"
#include "model/tool/number_formats.h"
#include "tests/model/golden_paths.h"
#include "tests/model/torch/golden_case.h"

namespace txl {
namespace {

using Tensors = std::map<std::string, TensorInfo>;

constexpr AttentionForm kProjected = AttentionForm::kProjected;
constexpr AttentionForm kAbsorbed = AttentionForm::kAbsorbed;

// Sizes that fill no panel of 64 rows: widths 40 (HD), 80, 100 and 130 take
// 64, 128, 128 and 192.
ModelConfig OddSizes() {
  ModelConfig config;
  config.vocab_size = 130;
  config.n_layer = 2;
  config.n_head = 2;
  config.d_head = 20;
  config.d_model = config.d_embed = 80;
  config.d_inner = 100;
  config.mem_len = 70;
  config.window = 71;
  config.final_norm = true;
  return config;
}

// Numbers of one layer's packed matrices.
constexpr int64_t kLayerMatrices = 64 * 80     // wq
                                   + 128 * 80  // wk and wv, 80 rows
                                   + 128 * 40  // wo
                                   + 128 * 80 + 128 * 100;
// Its float32 numbers: two biases, u and v, two norms.
constexpr int64_t kLayerFloats = 128 + 128 + 2 * 40 + 4 * 128;
// An untied table of words: once for the input, once for the output.
constexpr int64_t kWordMatrices = 2 * 192 * 80;
constexpr int64_t kFloats =
    2 * kLayerFloats + 192 /*word biases*/ + 2 * 128 /*final norm*/;

TEST(NativeWeightBytesTest, RowsArePaddedToWholePanels) {
  const int64_t numbers = 2 * kLayerMatrices + kWordMatrices;
  EXPECT_EQ(NativeWeightBytes(OddSizes(), {}, kProjected, NumberFormat::kF32),
            4 * numbers + 4 * kFloats);
  EXPECT_EQ(4 * numbers + 4 * kFloats, 479616);
}

TEST(NativeWeightBytesTest, OnlyMatricesNarrow) {
  const int64_t numbers = 2 * kLayerMatrices + kWordMatrices;
  EXPECT_EQ(NativeWeightBytes(OddSizes(), {}, kProjected, NumberFormat::kF16),
            2 * numbers + 4 * kFloats);
  EXPECT_EQ(NativeWeightBytes(OddSizes(), {}, kProjected, NumberFormat::kBF16),
            2 * numbers + 4 * kFloats);
}

TEST(NativeWeightBytesTest, Int8HasAScalePerRow) {
  const int64_t scales = 2 * (64 + 4 * 128) + 2 * 192;
  EXPECT_EQ(NativeWeightBytes(OddSizes(), {}, kProjected, NumberFormat::kInt8),
            2 * kLayerMatrices + kWordMatrices + 4 * scales + 4 * kFloats);
}

// A layer's in groups of 32 inputs, 17 bytes for each of a panel's outputs;
// words in int8.
TEST(NativeWeightBytesTest, Int4IsForLayersAlone) {
  const int64_t groups = 64 * 3 + 128 * 3 + 128 * 2 + 128 * 3 + 128 * 4;
  const int64_t scales = 2 * (64 + 4 * 128) + 2 * 192;
  EXPECT_EQ(NativeWeightBytes(OddSizes(), {}, kProjected, NumberFormat::kInt4),
            2 * 17 * groups + kWordMatrices + 4 * scales + 4 * kFloats);
}

TEST(NativeWeightBytesTest, AbsorbedKeysAndValuesArePackedHeadByHead) {
  // Per head [d, D] and [D, d] in place of one matrix of 2 H D rows.
  const int64_t per_layer = 2 * (128 * 20 + 64 * 80) - 128 * 80;
  EXPECT_EQ(
      NativeWeightBytes(OddSizes(), {}, kAbsorbed, NumberFormat::kF32) -
          NativeWeightBytes(OddSizes(), {}, kProjected, NumberFormat::kF32),
      2 * 4 * per_layer);
  // The bias on values adds once, unpadded.
  const Tensors bias = {{"layer.0.bv", {}}};
  EXPECT_EQ(
      NativeWeightBytes(OddSizes(), bias, kAbsorbed, NumberFormat::kInt8) -
          NativeWeightBytes(OddSizes(), {}, kAbsorbed, NumberFormat::kInt8),
      2 * 4 * 40);
}

TEST(NativeWeightBytesTest, TiedTablesCountOnceAndMissingPartsNot) {
  ModelConfig config = OddSizes();
  const int64_t whole =
      NativeWeightBytes(config, {}, kProjected, NumberFormat::kF32);
  config.tie_weight = true;
  EXPECT_EQ(
      whole - NativeWeightBytes(config, {}, kProjected, NumberFormat::kF32),
      4 * 192 * 80);
  config.head_bias = false;
  config.final_norm = false;
  EXPECT_EQ(
      whole - NativeWeightBytes(config, {}, kProjected, NumberFormat::kF32),
      4 * (192 * 80 + 192 + 2 * 128));
}

TEST(NativeWeightBytesTest, BiasesOfAttentionCountWhereTheFileHasThem) {
  const Tensors biases = {{"layer.0.bq", {}},
                          {"layer.0.bk", {}},  // drops out of the softmax
                          {"layer.0.bv", {}},
                          {"layer.0.br", {}},
                          {"layer.0.bo", {}}};
  EXPECT_EQ(
      NativeWeightBytes(OddSizes(), biases, kProjected, NumberFormat::kF16) -
          NativeWeightBytes(OddSizes(), {}, kProjected, NumberFormat::kF16),
      2 * 4 * (64 + 128 + 128));
}

TEST(NativeWeightBytesTest, AdaptiveBinsHaveClustersAndProjections) {
  ModelConfig config = OddSizes();
  const int64_t plain =
      NativeWeightBytes(config, {}, kProjected, NumberFormat::kF32);
  config.tie_weight = true;
  config.cutoffs = {62, 70};  // bins of 62, 8 and 60 words
  config.div_val = 2;         // 80, 40 and 20 wide
  config.tie_projs = {false, true, true};
  const Tensors projections = {{"emb.1.proj", {}}, {"emb.2.proj", {}}};
  // 62 words and two clusters, 8 and 60 words; [d, e_b] and [e_b, d] per bin.
  const int64_t words = 64 * 80 + 64 * 40 + 64 * 20;
  const int64_t projected = (128 * 40 + 64 * 80) + (128 * 20 + 64 * 80);
  EXPECT_EQ(
      NativeWeightBytes(config, projections, kProjected, NumberFormat::kF32),
      plain + 4 * (words + 3 * 64 + projected - kWordMatrices - 192));
}

TEST(NativePositionKeyBytesTest, AreATileOfDistancesPerLayerAndHead) {
  ModelConfig config = OddSizes();
  // 71 distances take 128 lanes of D = 20.
  EXPECT_EQ(NativePositionKeyBytes(config, NumberFormat::kF32),
            2 * 2 * 128 * 20 * 4);
  EXPECT_EQ(NativePositionKeyBytes(config, NumberFormat::kBF16),
            2 * 2 * 128 * 20 * 2);
  config.clamp_len = 30;  // distances 0..30 differ
  EXPECT_EQ(NativePositionKeyBytes(config, NumberFormat::kF32),
            2 * 2 * 64 * 20 * 4);
}

TEST(NativePositionKeyBytesTest, TablesHaveABiasPerDistance) {
  ModelConfig config = OddSizes();
  config.pos = PositionKind::kTable;
  config.clamp_len = 30;  // repeats rows of the table
  EXPECT_EQ(NativePositionKeyBytes(config, NumberFormat::kF16),
            2 * 2 * 128 * (20 * 2 + 4));
}

// What PackWeights allocates, which the arithmetic must foretell.
int64_t Bytes(const AlignedBuffer<float>& buffer) { return 4 * buffer.size(); }
int64_t Bytes(const std::optional<NativeNorm>& norm) {
  return norm.has_value() ? Bytes(norm->g) + Bytes(norm->b) : 0;
}

int64_t PackedBytes(const NativeWeights& weights) {
  int64_t bytes = Bytes(weights.final_norm);
  for (const NativeLayer& l : weights.layers) {
    for (const PackedMatrix* m : {&l.wq, &l.wkv, &l.wo, &l.ff_w1, &l.ff_w2}) {
      bytes += m->bytes();
    }
    for (const auto* heads : {&l.absorbed_keys, &l.absorbed_values}) {
      for (const PackedMatrix& m : *heads) bytes += m.bytes();
    }
    for (const auto* b : {&l.bq, &l.bkv, &l.value_bias, &l.bo, &l.u, &l.v,
                          &l.ff_b1, &l.ff_b2}) {
      bytes += Bytes(*b);
    }
    bytes += Bytes(l.ln1.g) + Bytes(l.ln1.b) + Bytes(l.ln2.g) + Bytes(l.ln2.b);
  }
  for (const NativeBin& bin : weights.bins) {
    bytes += bin.words.bytes() + bin.out_proj.bytes() + bin.in_proj.bytes() +
             bin.embedding.bytes() + Bytes(bin.bias);
  }
  return bytes;
}

int64_t PackedPositionBytes(const NativeWeights& weights) {
  int64_t bytes = 0;
  for (const NativeLayer& layer : weights.layers) {
    for (const PackedMatrix& keys : layer.position_keys) bytes += keys.bytes();
    bytes += Bytes(layer.position_bias);
  }
  return bytes;
}

class NativeBytesTest : public testing::TestWithParam<std::string> {};

TEST_P(NativeBytesTest, ForetellWhatPackingTakes) {
  const GoldenCase golden = LoadGoldenCase(GetParam(), at::kFloat);
  Tensors tensors;
  for (const auto& [name, tensor] : golden.weights.Named()) tensors[name] = {};
  for (const NamedForm& form : kForms) {
    for (const NamedFormat& named : kWeightFormats) {
      NativeFormats formats;
      formats.form = form.form;
      formats.weights = named.format;
      if (named.format != NumberFormat::kInt4) formats.derived = named.format;
      const NativeWeights packed =
          PackWeights(golden.config, golden.weights, formats);
      EXPECT_EQ(
          NativeWeightBytes(golden.config, tensors, form.form, named.format),
          PackedBytes(packed))
          << form.name << " " << named.name;
      EXPECT_EQ(NativePositionKeyBytes(golden.config, formats.derived),
                PackedPositionBytes(packed))
          << form.name << " " << named.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, NativeBytesTest,
                         testing::ValuesIn(GoldenCaseNames()),
                         [](const auto& param) {
                           return GoldenParamName(param.param);
                         });

}  // namespace
}  // namespace txl
