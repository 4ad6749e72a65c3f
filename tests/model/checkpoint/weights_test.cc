#include "model/checkpoint/weights.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/checkpoint/canonical_tensors.h"
#include "model/checkpoint/safetensors.h"
#include "tests/model/checkpoint/raw_safetensors.h"

namespace txl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

ModelConfig Tied() {
  ModelConfig config;
  config.vocab_size = 20;
  config.n_layer = 2;
  config.n_head = 2;
  config.d_head = 3;
  config.d_model = 8;
  config.d_embed = 8;
  config.d_inner = 5;
  config.mem_len = 4;
  config.cutoffs = {6, 11};
  config.div_val = 2;
  config.emb_proj_bin0 = true;
  config.tie_weight = true;
  config.tie_projs = {false, true, true};
  return config;
}

// One tensor of a file in the making.
struct Part {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  std::string bytes;
};
using Parts = std::map<std::string, Part>;

// Small numbers that differ in every place; tied tensors are left out.
Parts FileParts(const ModelConfig& config) {
  Parts parts;
  float next = 0;
  for (const auto& [name, tensor] : CanonicalTensors(config)) {
    if (tensor.presence != Presence::kRequired) continue;
    Part part;
    part.shape = tensor.shape;
    int64_t count = 1;
    for (int64_t& size : part.shape) {
      if (size == -1) size = 7;
      count *= size;
    }
    std::vector<float> values;
    for (int64_t i = 0; i < count; ++i) values.push_back(next += 0.125f);
    part.bytes = F32Bytes(values);
    parts[name] = part;
  }
  return parts;
}

// Laid out by hand, in the order of the names.
std::string WriteParts(const Parts& parts) {
  std::vector<std::string> entries;
  std::string data;
  for (const auto& [name, part] : parts) {
    entries.push_back(
        Entry(name, std::string(DTypeName(part.dtype)),
              absl::StrCat("[", absl::StrJoin(part.shape, ","), "]"),
              data.size(), data.size() + part.bytes.size()));
    data += part.bytes;
  }
  return WriteTempFile("model.safetensors",
                       RawSafetensors(Header(entries), data));
}

absl::Status LoadStatus(const ModelConfig& config, const Parts& parts,
                        const LoadOptions& options = {}) {
  const std::string path = WriteParts(parts);
  const absl::Status status = LoadWeights(config, path, options).status();
  if (!status.ok()) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr(path));
  }
  return status;
}

std::map<std::string, at::Tensor> Load(const ModelConfig& config,
                                       const Parts& parts,
                                       const LoadOptions& options = {}) {
  const auto weights = LoadWeights(config, WriteParts(parts), options);
  EXPECT_TRUE(weights.ok()) << weights.status();
  std::map<std::string, at::Tensor> named;
  if (!weights.ok()) return named;
  for (const auto& [name, tensor] : weights->Named()) named[name] = tensor;
  return named;
}

TEST(LoadWeights, MembersHoldTheTensorsOfTheirNames) {
  const ModelConfig config = Tied();
  const auto weights = LoadWeights(config, WriteParts(FileParts(config)), {});
  ASSERT_TRUE(weights.ok()) << weights.status();
  std::map<std::string, at::Tensor> named;
  for (const auto& [name, tensor] : weights->Named()) named[name] = tensor;
  EXPECT_TRUE(named.at("emb.1.proj").is_same(weights->embedding[1].proj));
  EXPECT_TRUE(named.at("head.2.b").is_same(weights->head[2].b));
  EXPECT_TRUE(named.at("layer.1.wq").is_same(weights->layers[1].wq));
  EXPECT_TRUE(named.at("layer.1.wo").is_same(weights->layers[1].wo));
  EXPECT_TRUE(named.at("layer.0.u").is_same(weights->layers[0].u));
  EXPECT_TRUE(named.at("layer.0.v").is_same(weights->layers[0].v));
  EXPECT_TRUE(named.at("layer.0.ln1.g").is_same(weights->layers[0].ln1_g));
  EXPECT_TRUE(named.at("layer.0.ln2.b").is_same(weights->layers[0].ln2_b));
  EXPECT_TRUE(named.at("layer.0.ff.w1").is_same(weights->layers[0].ff_w1));
  EXPECT_TRUE(named.at("layer.0.ff.b2").is_same(weights->layers[0].ff_b2));
  EXPECT_TRUE(named.at("head.cluster.w").is_same(weights->cluster_w));
  EXPECT_FALSE(weights->layers[0].bq.defined());
  EXPECT_FALSE(weights->layers[0].rel_t.defined());
  EXPECT_FALSE(weights->final_g.defined());
  EXPECT_FALSE(weights->inv_freq.defined());
}

TEST(LoadWeights, OptionalPartsAreTakenWhereTheFileHasThem) {
  const ModelConfig config = Tied();
  Parts parts = FileParts(config);
  parts["pos.inv_freq"] = {DType::kF32, {4}, F32Bytes({1, 0.5, 0.25, 0.125})};
  for (const char* layer : {"layer.0.bv", "layer.1.bv"}) {
    parts[layer] = {DType::kF32, {6}, F32Bytes({1, 2, 3, 4, 5, 6})};
  }
  const auto named = Load(config, parts);
  EXPECT_TRUE(at::equal(named.at("pos.inv_freq"),
                        at::tensor({1.0f, 0.5f, 0.25f, 0.125f})));
  EXPECT_EQ(named.at("layer.1.bv")[5].item<float>(), 6);
}

TEST(LoadWeights, ATiedTensorThatIsWrittenTwiceSharesStorage) {
  const ModelConfig config = Tied();
  Parts parts = FileParts(config);
  parts["head.1.w"] = parts.at("emb.1.w");
  const auto named = Load(config, parts);
  EXPECT_EQ(named.at("head.1.w").data_ptr(), named.at("emb.1.w").data_ptr());
  EXPECT_EQ(named.at("head.2.proj").data_ptr(),
            named.at("emb.2.proj").data_ptr());
}

TEST(LoadWeights, ATiedTensorThatSaysSomethingElseIsRefused) {
  const ModelConfig config = Tied();
  Parts parts = FileParts(config);
  parts["head.1.w"] = parts.at("emb.1.w");
  parts["head.1.w"].bytes[5] ^= 1;  // the last bits of one number
  EXPECT_THAT(LoadStatus(config, parts).message(),
              HasSubstr("tensor head.1.w differs from emb.1.w"));
}

TEST(LoadWeights, MinusZeroIsNotZeroForATie) {
  const ModelConfig config = Tied();
  Parts parts = FileParts(config);
  parts["emb.1.w"].bytes.replace(0, 4, F32Bytes({0.0f}));
  parts["head.1.w"] = parts.at("emb.1.w");
  EXPECT_TRUE(LoadStatus(config, parts).ok());
  parts["head.1.w"].bytes.replace(0, 4, F32Bytes({-0.0f}));
  EXPECT_FALSE(LoadStatus(config, parts).ok());
}

TEST(LoadWeights, AnUntiedHeadMustBeThere) {
  ModelConfig config = Tied();
  Parts parts = FileParts(config);
  config.tie_weight = false;
  EXPECT_THAT(LoadStatus(config, parts).message(),
              HasSubstr("tensor head.0.w is missing"));
}

TEST(LoadWeights, ValuesThatAreNotFiniteAreRefusedNamingTheTensor) {
  const ModelConfig config = Tied();
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    Parts parts = FileParts(config);
    std::string& bytes = parts["layer.1.ff.w2"].bytes;
    bytes.replace(bytes.size() - 4, 4, F32Bytes({bad}));
    EXPECT_THAT(
        LoadStatus(config, parts).message(),
        HasSubstr("tensor layer.1.ff.w2 holds a value that is not finite"));
  }
}

TEST(LoadWeights, HalvesAreWidenedExactly) {
  const ModelConfig config = Tied();
  Parts parts = FileParts(config);
  // 1, -2, 65504 and the smallest subnormal, as binary16; then as bfloat16
  // 1, -2, the largest and the smallest normal number.
  parts["head.cluster.b"] = {
      DType::kF16, {2}, std::string("\x00\x3c\xff\x7b", 4)};
  parts["head.1.b"] = {
      DType::kBF16,
      {5},
      std::string("\x80\x3f\x00\xc0\x7f\x7f\x80\x00\x00\x00", 10)};
  const auto named = Load(config, parts, {.dtype = at::kDouble});
  EXPECT_TRUE(at::equal(named.at("head.cluster.b"),
                        at::tensor({1.0, 65504.0}, at::kDouble)));
  EXPECT_TRUE(at::equal(named.at("head.1.b"),
                        at::tensor({1.0, -2.0, std::ldexp(255.0, 120),
                                    std::ldexp(1.0, -126), 0.0},
                                   at::kDouble)));
}

std::string F64Bytes(const std::vector<double>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()),
                     values.size() * sizeof(double));
}

TEST(LoadWeights, DoublesKeepTheirBitsInADoubleRun) {
  const ModelConfig config = Tied();
  Parts parts = FileParts(config);
  parts["head.cluster.b"] = {DType::kF64, {2}, F64Bytes({0.1, 1e300})};
  const auto named = Load(config, parts, {.dtype = at::kDouble});
  EXPECT_EQ(named.at("head.cluster.b")[0].item<double>(), 0.1);
  EXPECT_EQ(named.at("head.cluster.b")[1].item<double>(), 1e300);
}

TEST(LoadWeights, ADoubleThatIsTooLargeForTheRunIsRefused) {
  const ModelConfig config = Tied();
  Parts parts = FileParts(config);
  parts["head.cluster.b"] = {DType::kF64, {2}, F64Bytes({0.1, 1e300})};
  EXPECT_THAT(LoadStatus(config, parts).message(),
              HasSubstr("tensor head.cluster.b"));
}

// Data may start at any byte in files of other writers.
TEST(LoadWeights, DataNeedNotBeAligned) {
  const ModelConfig config = Tied();
  const Parts parts = FileParts(config);
  const std::string aligned = ReadWholeFile(WriteParts(parts));
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i) {
    length = length * 256 + static_cast<uint8_t>(aligned[i]);
  }
  const auto expected = Load(config, parts);
  for (size_t pad = 0; pad < 4; ++pad) {
    const std::string path = WriteTempFile(
        "moved",
        RawSafetensors(aligned.substr(8, length) + std::string(pad, ' '),
                       aligned.substr(8 + length)));
    const auto weights = LoadWeights(config, path, {});
    ASSERT_TRUE(weights.ok()) << weights.status();
    for (const auto& [name, tensor] : weights->Named()) {
      EXPECT_TRUE(at::equal(tensor, expected.at(name))) << name;
    }
  }
}

TEST(LoadWeights, AMissingFileIsNotFound) {
  EXPECT_EQ(
      LoadWeights(Tied(), testing::TempDir() + "txl_none", {}).status().code(),
      absl::StatusCode::kNotFound);
}

TEST(LoadWeights, AFileThatGoesLaterLeavesTheWeights) {
  const ModelConfig config = Tied();
  const Parts parts = FileParts(config);
  const std::string path = WriteParts(parts);
  const auto weights = LoadWeights(config, path, {});
  ASSERT_TRUE(weights.ok());
  WriteTempFile("model.safetensors", "");  // truncates it
  const at::Tensor& w = weights->embedding[0].w;
  const std::string& bytes = parts.at("emb.0.w").bytes;
  EXPECT_EQ(std::memcmp(w.const_data_ptr(), bytes.data(), bytes.size()), 0);
}

// Zeros over all of a file's data, where they lie.
void EraseData(const std::string& path) {
  std::string bytes = ReadWholeFile(path);
  uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof(header));
  std::fill(bytes.begin() + sizeof(header) + header, bytes.end(), '\0');
  std::ofstream(path, std::ios::binary) << bytes;
}

TEST(LoadWeights, MappedTensorsAreTheFilesUnlessTheirTypeIsAnother) {
  const ModelConfig config = Tied();
  const auto source = LoadWeights(config, WriteParts(FileParts(config)), {});
  ASSERT_TRUE(source.ok()) << source.status();
  const std::string path = testing::TempDir() + "mapped.safetensors";
  for (const at::ScalarType stored : {at::kFloat, at::kHalf}) {
    ASSERT_TRUE(SaveWeights(*source, config, path, stored).ok());
    const auto weights = LoadWeights(config, path, {.mapped = true});
    ASSERT_TRUE(weights.ok()) << weights.status();
    const at::Tensor& words = weights->embedding[0].w;
    EXPECT_TRUE(words.equal(source->embedding[0].w.to(stored).to(at::kFloat)));
    const Weights copy = CopyOf(*weights);
    EraseData(path);
    EXPECT_EQ(words.any().item<bool>(), stored != at::kFloat);
    EXPECT_TRUE(copy.embedding[0].w.any().item<bool>());
  }
}

TEST(CopyOf, KeepsWhatIsTiedAndWhatIsNotThere) {
  const ModelConfig config = Tied();
  const auto weights = LoadWeights(config, WriteParts(FileParts(config)), {});
  ASSERT_TRUE(weights.ok()) << weights.status();
  const Weights copy = CopyOf(*weights);
  EXPECT_TRUE(copy.head[1].w.is_same(copy.embedding[1].w));
  EXPECT_FALSE(copy.head[1].w.is_alias_of(weights->head[1].w));
  EXPECT_FALSE(copy.final_g.defined());
  EXPECT_EQ(copy.Bytes(), weights->Bytes());
  const auto before = weights->Named();
  const auto after = copy.Named();
  ASSERT_EQ(after.size(), before.size());
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_TRUE(at::equal(after[i].second, before[i].second))
        << before[i].first;
  }
}

TEST(SaveWeights, HalvesAreRoundedOnce) {
  const ModelConfig config = Tied();
  const auto weights = LoadWeights(config, WriteParts(FileParts(config)), {});
  ASSERT_TRUE(weights.ok());
  const std::string path = FreshTempFolder("half") + "/model.safetensors";
  ASSERT_TRUE(SaveWeights(*weights, config, path, at::kBFloat16).ok());
  const auto again = LoadWeights(config, path, {});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(
      at::equal(again->layers[1].wq,
                weights->layers[1].wq.to(at::kBFloat16).to(at::kFloat)));
}

TEST(SaveWeights, NumbersThatTheTypeCannotHoldAreRefused) {
  const ModelConfig config = Tied();
  auto weights = LoadWeights(config, WriteParts(FileParts(config)), {});
  ASSERT_TRUE(weights.ok());
  weights->layers[0].wv[0][0] = 70000.0f;  // above 65504
  const std::string path = FreshTempFolder("half") + "/model.safetensors";
  const absl::Status status = SaveWeights(*weights, config, path, at::kHalf);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr(path), HasSubstr("tensor layer.0.wv")));
}

TEST(SaveWeights, OnlyFloatsAreWritten) {
  EXPECT_EQ(SaveWeights(Weights(), Tied(), testing::TempDir() + "txl_never",
                        at::kLong)
                .code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(SaveWeights, ATensorOutsideTheConfigIsRefused) {
  ModelConfig config = Tied();
  auto weights = LoadWeights(config, WriteParts(FileParts(config)), {});
  ASSERT_TRUE(weights.ok());
  config.head_bias = false;
  const std::string path = FreshTempFolder("out") + "/model.safetensors";
  EXPECT_THAT(SaveWeights(*weights, config, path, at::kFloat).message(),
              HasSubstr("tensor head.0.b"));
}

}  // namespace

// Weights that a step cannot be made from are refused before it packs them.

namespace {

using ::testing::HasSubstr;

ModelConfig TwoBins() {
  ModelConfig config;
  config.vocab_size = 20;
  config.n_layer = 2;
  config.n_head = 2;
  config.d_head = 4;
  config.d_model = 8;
  config.d_embed = 8;
  config.d_inner = 8;
  config.mem_len = 4;
  config.cutoffs = {6};
  config.div_val = 1;
  config.tie_projs = {false, false};
  return config;
}

Weights WeightsIn(at::ScalarType dtype) {
  LoadOptions options = {.dtype = dtype};
  return RandomWeights(TwoBins(), 0.02, 1, options);
}

TEST(WeightsCheckTest, WeightsOfTheConfigAreTaken) {
  const Weights weights = WeightsIn(at::kFloat);
  EXPECT_TRUE(CheckCounts(weights, TwoBins()).ok());
  EXPECT_TRUE(CheckFloat32OnCpu(weights, TwoBins(), "this step").ok());
}

TEST(WeightsCheckTest, EveryCountMustBeTheConfigs) {
  Weights layers = WeightsIn(at::kFloat), embedding = layers, head = layers;
  layers.layers.pop_back();
  embedding.embedding.pop_back();
  head.head.pop_back();
  for (const Weights& weights : {layers, embedding, head}) {
    for (const absl::Status& status :
         {CheckCounts(weights, TwoBins()),
          CheckFloat32OnCpu(weights, TwoBins(), "this step")}) {
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(status.message(), HasSubstr("do not fit the config"));
    }
  }
}

TEST(WeightsCheckTest, ADoubleIsRefusedByAStepThatPacksFloats) {
  const Weights weights = WeightsIn(at::kDouble);
  EXPECT_TRUE(CheckCounts(weights, TwoBins()).ok());
  const absl::Status status =
      CheckFloat32OnCpu(weights, TwoBins(), "this step");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("this step takes float32"));
}

}  // namespace

}  // namespace txl
