#include "model/tool/checkpoint_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "model/base/number_format.h"
#include "model/checkpoint/weights.h"
#include "model/cpu/attention_form.h"
#include "model/cpu/native_weights.h"
#include "model/tool/model_flags.h"
#include "tests/model/golden_paths.h"
#include "tests/model/torch/golden_case.h"

namespace txl {
namespace {

using nlohmann::ordered_json;
using testing::ElementsAre;
using testing::HasSubstr;

ModelConfig Config() {
  ModelConfig config;
  config.vocab_size = 130;
  config.n_layer = 2;
  config.n_head = 2;
  config.d_head = 20;
  config.d_model = config.d_embed = 80;
  config.d_inner = 100;
  config.mem_len = 70;
  return config;
}

std::vector<std::string> Keys(const ordered_json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

std::string Printed(const ordered_json& facts) {
  std::ostringstream out;
  PrintFacts(facts, /*tensors=*/true, out);
  return out.str();
}

TEST(MemoryBytesTest, AreLayersTimesRowsTimesWidth) {
  EXPECT_EQ(MemoryBytes(Config())["f32"], 2 * 70 * 80 * 4);
  EXPECT_EQ(MemoryBytes(Config())["f16"], 2 * 70 * 80 * 2);
}

TEST(NativeFactsTest, EveryFormatAndFormHasAFigure) {
  const ordered_json facts = NativeFacts(Config(), {});
  for (const char* form : {"projected", "absorbed"}) {
    EXPECT_THAT(Keys(facts["native_weight_bytes"][form]),
                ElementsAre("f32", "bf16", "f16", "int8", "int4"));
  }
  EXPECT_THAT(Keys(facts["native_position_key_bytes"]),
              ElementsAre("f32", "bf16", "f16", "int8"));
  for (const char* table : {"native_form", "native_slot_bytes"}) {
    EXPECT_THAT(Keys(facts[table]), ElementsAre("memory_f32", "memory_bf16",
                                                "memory_f16", "memory_int8"));
  }
  for (const auto& [memory, slots] : facts["native_slot_bytes"].items()) {
    EXPECT_THAT(Keys(slots),
                ElementsAre("absorbed", "projected_f32", "projected_bf16",
                            "projected_f16", "projected_int8"));
  }
}

TEST(NativeFactsTest, TheFormIsTheOneThatAServerTakes) {
  const ordered_json forms = NativeFacts(Config(), {})["native_form"];
  for (const NamedFormat& memory : kRowFormats) {
    for (const NamedFormat& derived : kRowFormats) {
      NativeFormats formats;
      formats.memory = memory.format;
      formats.derived = derived.format;
      EXPECT_EQ(forms[std::string("memory_") + memory.name]
                     [std::string("derived_") + derived.name],
                FormName(ResolveForm(Config(), formats)));
    }
  }
  // Twenty heads are never worth the arithmetic of absorbing them.
  ModelConfig many_heads = Config();
  many_heads.n_head = 20;
  many_heads.d_head = 4;
  EXPECT_EQ(
      NativeFacts(many_heads, {})["native_form"]["memory_f32"]["derived_f32"],
      "projected");
}

TEST(NativeFactsTest, ASlotHoldsStoredAndInProjectedFormDerivedRows) {
  const ordered_json slots = NativeFacts(Config(), {})["native_slot_bytes"];
  // 70 rows and 64 spare ones take three tiles of 64 positions.
  const int64_t rows = 192 * 80;
  // Keys are 20 wide, values 20 rounded up to 32, for two heads.
  const int64_t derived = 192 * 2 * (20 + 32);
  const ordered_json& f32 = slots["memory_f32"];
  EXPECT_EQ(f32["absorbed"], 2 * 4 * rows);
  EXPECT_EQ(f32["projected_f32"], 2 * (4 * rows + 4 * derived));
  EXPECT_EQ(f32["projected_f16"], 2 * (4 * rows + 2 * derived));
  EXPECT_EQ(slots["memory_f16"]["absorbed"], 2 * 2 * rows);
  EXPECT_EQ(slots["memory_f16"]["projected_f32"], 2 * (2 * rows + 4 * derived));
  EXPECT_EQ(slots["memory_bf16"]["projected_bf16"],
            2 * (2 * rows + 2 * derived));
}

TEST(NativeFactsTest, NeedNoMemoryOfTheModelsSize) {
  ModelConfig config = Config();
  config.d_model = config.d_embed = config.d_inner = 1 << 16;
  config.n_layer = 1000;
  config.mem_len = 1 << 20;
  // More than any machine has.
  EXPECT_GT(
      NativeFacts(config, {})["native_slot_bytes"]["memory_f32"]["absorbed"],
      int64_t{1} << 47);
}

TEST(PrintFactsTest, ScalarsHaveALineAndObjectsAreIndented) {
  EXPECT_EQ(Printed({{"kind", "checkpoint"},
                     {"sizes", {{"f32", 4}, {"f16", 2}}},
                     {"oddities", {"no vocabulary"}},
                     {"nothing", ordered_json::array()}}),
            "kind               checkpoint\n"
            "sizes:\n"
            "  f32              4\n"
            "  f16              2\n"
            "oddities:\n"
            "  no vocabulary\n");
}

TEST(PrintFactsTest, ObjectsInObjectsAreOneLine) {
  EXPECT_EQ(Printed({{"slots",
                      {{"memory_f32", {{"derived_f32", 8}, {"derived_f16", 6}}},
                       {"memory_f16", {{"derived_f32", 7}}}}}}),
            "slots:\n"
            "  memory_f32       derived_f32 8, derived_f16 6\n"
            "  memory_f16       derived_f32 7\n");
}

TEST(PrintFactsTest, BytesAreReadableAtAnyDepth) {
  EXPECT_EQ(Printed({{"slot_bytes", {{"f32", {{"absorbed", 1638400}}}}},
                     {"bytes", 512}}),
            "slot_bytes:\n"
            "  f32              absorbed 1.6 MiB\n"
            "bytes              512 B\n");
}

TEST(PrintFactsTest, TensorsAreCountedUnlessAskedFor) {
  std::ostringstream out;
  PrintFacts({{"tensors", {{{"name", "emb.0.w"}}}}}, /*tensors=*/false, out);
  EXPECT_EQ(out.str(), "tensors            1 (--tensors lists them)\n");
}

TEST(PrintFactsTest, FieldsStandBesideWhoSaidThem) {
  const std::string text =
      Printed({{"config", {{"mem_len", 12}, {"window", 9}}},
               {"origins", {{"mem_len", "checkpoint"}}},
               {"tensors",
                {{{"name", "emb.0.w"}, {"dtype", "F16"}, {"shape", {7, 4}}}}}});
  EXPECT_THAT(text, testing::ContainsRegex("mem_len +12 +checkpoint\n"));
  EXPECT_THAT(text, testing::ContainsRegex("window +9\n"));
  EXPECT_THAT(text, testing::ContainsRegex("emb.0.w +F16 +\\[7,4\\]\n"));
  EXPECT_THAT(text, testing::Not(HasSubstr("origins")));
}

using Tensors = std::map<std::string, TensorInfo>;

constexpr AttentionForm kProjected = AttentionForm::kProjected;
constexpr AttentionForm kAbsorbed = AttentionForm::kAbsorbed;

// Sizes that fill no panel of 64 rows: widths 40 (HD), 80, 100 and 130 take
// 64, 128, 128 and 192.
ModelConfig OddSizes() {
  ModelConfig config = Config();
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
  int64_t bytes =
      Bytes(weights.final_norm) + Bytes(weights.beat) + Bytes(weights.bar);
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
      NativeFormats formats = {.weights = named.format, .form = form.form};
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
