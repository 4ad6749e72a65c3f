// Files that torch itself wrote, of several versions and both containers.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/checkpoint/safetensors.h"
#include "model/convert/container/torch_checkpoint.h"
#include "tests/model/golden_paths.h"

namespace txl {
namespace {

using nlohmann::json;

std::string Native(const std::string& file) {
  return TestData() + "/golden/" + file;
}

NativeCheckpoint Load(const std::string& path) {
  absl::StatusOr<NativeCheckpoint> checkpoint = ReadTorchFile(path);
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  return checkpoint.ok() ? *std::move(checkpoint) : NativeCheckpoint();
}

NativeCheckpoint Modern(const std::string& file) {
  return Load(TestData() + "/model/convert/container/testdata/torch/" + file);
}

std::string BytesOf(const NativeCheckpoint& checkpoint,
                    const std::string& name) {
  const auto found = checkpoint.tensors.find(name);
  if (found == checkpoint.tensors.end()) return "no tensor " + name;
  const absl::StatusOr<std::string> bytes = ReadTensor(found->second);
  return bytes.ok() ? *bytes : std::string(bytes.status().message());
}

template <typename T>
std::vector<T> Values(const NativeCheckpoint& checkpoint,
                      const std::string& name) {
  const std::string bytes = BytesOf(checkpoint, name);
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) {
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  }
  return values;
}

std::string BytesOf(const SafetensorsReader& reader, const std::string& name) {
  const auto found = reader.tensors().find(name);
  if (found == reader.tensors().end()) return "absent in safetensors " + name;
  const absl::Span<const uint8_t> bytes = reader.Bytes(found->second);
  return std::string(bytes.begin(), bytes.end());
}

// The canonical matrices of a layer's attention, joined as qkv_net has them.
std::string Qkv(const SafetensorsReader& canonical, const std::string& layer) {
  return BytesOf(canonical, layer + "wq") + BytesOf(canonical, layer + "wk") +
         BytesOf(canonical, layer + "wv");
}

class KimiFile : public testing::TestWithParam<const char*> {};

TEST_P(KimiFile, HoldsTheCanonicalWeights) {
  const NativeCheckpoint native = Load(Native(GetParam()));
  const auto canonical =
      SafetensorsReader::Open(Native("kimi-char/model.safetensors"));
  ASSERT_TRUE(canonical.ok());
  const auto same = [&](const std::string& name, const std::string& other) {
    EXPECT_EQ(BytesOf(native, name), BytesOf(**canonical, other)) << name;
  };
  same("word_emb.emb_layers.0.weight", "emb.0.w");
  same("crit.out_layers.0.bias", "head.0.b");
  for (int layer = 0; layer < 3; ++layer) {
    const std::string from = "layers." + std::to_string(layer) + ".";
    const std::string to = "layer." + std::to_string(layer) + ".";
    EXPECT_EQ(BytesOf(native, from + "dec_attn.qkv_net.weight"),
              Qkv(**canonical, to));
    same(from + "dec_attn.r_net.weight", to + "wr");
    same(from + "dec_attn.o_net.weight", to + "wo");
    same(from + "dec_attn.layer_norm.weight", to + "ln1.g");
    same(from + "pos_ff.CoreNet.0.weight", to + "ff.w1");
    same(from + "pos_ff.CoreNet.3.bias", to + "ff.b2");
    same(from + "pos_ff.layer_norm.bias", to + "ln2.b");
    same("r_w_bias", to + "u");
    same("r_r_bias", to + "v");
  }
  EXPECT_EQ(native.tensors.size(), 39u);
}

INSTANTIATE_TEST_SUITE_P(AllContainers, KimiFile,
                         testing::Values("kimi-char/native/state_dict.pt",
                                         "kimi-char/native/model.pt",
                                         "kimi-char/native/model_legacy.pt",
                                         "kimi-char/native/model_torch10.pt"));

TEST(TorchGolden, PickledModuleKeepsTheAttributesOfItsParts) {
  for (const char* file : {"model.pt", "model_legacy.pt", "model_torch10.pt"}) {
    const NativeCheckpoint native =
        Load(Native(std::string("kimi-char/native/") + file));
    const json& data = native.data;
    EXPECT_EQ(data["__class__"], "mem_transformer.MemTransformerLM") << file;
    EXPECT_EQ(data["n_layer"], 3);
    EXPECT_EQ(data["n_token"], 61);
    EXPECT_EQ(data["_modules"]["layers"]["_modules"]["0"]["_modules"]
                  ["dec_attn"]["pre_lnorm"],
              false);
    EXPECT_FALSE(data.contains("_parameters"));
    EXPECT_FALSE(data.contains("_buffers"));
  }
}

TEST(TorchGolden, ModulesAndStateDictsGiveTheSameTensors) {
  for (const std::string family :
       {"kimi-adaptive-div1", "kimi-adaptive-div2", "kimi-shaw"}) {
    const NativeCheckpoint module = Load(Native(family + "/native/model.pt"));
    const NativeCheckpoint state =
        Load(Native(family + "/native/state_dict.pt"));
    ASSERT_EQ(module.tensors.size(), state.tensors.size());
    for (const auto& [name, tensor] : state.tensors) {
      EXPECT_EQ(BytesOf(module, name), BytesOf(state, name)) << name;
    }
  }
}

TEST(TorchGolden, ColumnMajorMatricesEqualTheRowMajorSafetensors) {
  for (const std::string file :
       {"hf-adaptive/native/pytorch_model.bin",
        "hf-adaptive/native/pytorch_model_zip.bin",
        "hf-prelnorm-tied-r/native/pytorch_model.bin"}) {
    const NativeCheckpoint native = Load(Native(file));
    const auto expected = SafetensorsReader::Open(
        Native(file.substr(0, file.find('/')) + "/native/model.safetensors"));
    ASSERT_TRUE(expected.ok());
    bool turned = false;
    for (const auto& [name, info] : (*expected)->tensors()) {
      EXPECT_EQ(BytesOf(native, name), BytesOf(**expected, name)) << name;
      const StoredTensor& tensor = native.tensors.at(name);
      EXPECT_EQ(tensor.shape, info.shape);
      turned |= tensor.dims() == 2 && tensor.strides[1] != 1;
    }
    EXPECT_TRUE(turned) << "the file has no column-major matrix";
  }
}

TEST(TorchGolden, TiedTensorsAreTheSameView) {
  for (const char* file : {"pytorch_model.bin", "pytorch_model_zip.bin"}) {
    const NativeCheckpoint native =
        Load(Native(std::string("hf-adaptive/native/") + file));
    const auto& tensors = native.tensors;
    EXPECT_TRUE(
        SameView(tensors.at("crit.out_layers.1.weight"),
                 tensors.at("transformer.word_emb.emb_layers.1.weight")));
    EXPECT_FALSE(
        SameView(tensors.at("crit.out_layers.0.weight"),
                 tensors.at("transformer.word_emb.emb_layers.1.weight")));
  }
}

TEST(TorchGolden, TrainingCheckpointsKeepSettingsAndVocabulary) {
  for (const std::string family :
       {"nvidia-2019", "nvidia-adaptive", "nvidia-div1"}) {
    const NativeCheckpoint native =
        Load(Native(family + "/native/checkpoint_best.pt"));
    EXPECT_EQ(native.container,
              family == "nvidia-2019" ? "torch legacy" : "torch zip");
    EXPECT_EQ(native.data["args"]["__class__"], "argparse.Namespace");
    EXPECT_EQ(native.data["vocab"]["__class__"], "utils.vocabulary.Vocab");
    std::ifstream file(Native(family + "/native/vocab.expected.json"));
    const json expected = json::parse(file);
    EXPECT_EQ(native.data["vocab"]["idx2sym"], expected["idx2sym"]);
  }
}

TEST(TorchGolden, ThuKeepsItsHalfPrecision) {
  const NativeCheckpoint native =
      Load(Native("thu/native/mp_rank_00_model_states.pt"));
  EXPECT_EQ(native.tensors.at("module.word_embeddings.weight").dtype,
            DType::kF16);
}

class ModernFile : public testing::TestWithParam<const char*> {};

TEST_P(ModernFile, ModuleHasTheNamesAndValuesOfItsStateDict) {
  const NativeCheckpoint native = Modern(GetParam());
  std::ifstream file(
      TestData() + "/model/convert/container/testdata/torch/modern_state.json");
  const json expected = json::parse(file);
  ASSERT_EQ(expected.size(), 12u);
  for (const std::string place : {"state.", "model."}) {
    for (const auto& [name, values] : expected.items()) {
      json flat = json::array();
      for (const json& row : values) {
        if (!row.is_array()) {
          flat.push_back(row.get<float>());
          continue;
        }
        for (const json& value : row) flat.push_back(value.get<float>());
      }
      EXPECT_EQ(json(Values<float>(native, place + name)), flat)
          << place + name;
    }
  }
  EXPECT_FALSE(native.tensors.contains("model.blocks.0.unsaved"));
  EXPECT_FALSE(native.tensors.contains("model.blocks.0.absent"));
}

TEST_P(ModernFile, ViewsAndTypesReadAsTorchMeansThem) {
  const NativeCheckpoint native = Modern(GetParam());
  EXPECT_THAT(Values<float>(native, "view"),
              testing::ElementsAre(8, 9, 10, 14, 15, 16));
  EXPECT_EQ(native.tensors.at("turned").shape, (std::vector<int64_t>{6, 4}));
  EXPECT_EQ(Values<float>(native, "turned")[1], 6);
  EXPECT_THAT(Values<float>(native, "expanded"), testing::ElementsAre(5, 5, 5));
  EXPECT_THAT(Values<double>(native, "scalar"), testing::ElementsAre(2.5));
  EXPECT_THAT(Values<float>(native, "empty"), testing::ElementsAre());
  EXPECT_THAT(Values<uint16_t>(native, "half"),
              testing::ElementsAre(0x3e00, 0xc000));
  EXPECT_THAT(Values<uint16_t>(native, "bf16"),
              testing::ElementsAre(0x3fc0, 0xc000));
  EXPECT_THAT(Values<int32_t>(native, "int"), testing::ElementsAre(-1, 2));
  EXPECT_THAT(Values<uint8_t>(native, "byte"), testing::ElementsAre(1, 255));
  EXPECT_THAT(Values<uint8_t>(native, "bool"), testing::ElementsAre(1, 0));
  EXPECT_THAT(Values<float>(native, "parameter"), testing::ElementsAre(4));
  EXPECT_THAT(Values<float>(native, "list.1.deep"), testing::ElementsAre(7));
  EXPECT_THAT(Values<int64_t>(native, "model.blocks.1.plain"),
              testing::ElementsAre(9, 8));
}

TEST_P(ModernFile, EverythingElseIsPlainData) {
  const json data = Modern(GetParam()).data;
  EXPECT_EQ(data["size"], json({2, 3}));
  EXPECT_EQ(data["device"], "cuda:1");
  EXPECT_EQ(data["dtype"], "torch.bfloat16");
  EXPECT_EQ(data["default"], json({{"a", {1}}}));
  EXPECT_EQ(data["counter"], json({{"a", 2}, {"b", 1}}));
  EXPECT_EQ(data["5"], "five");
  EXPECT_EQ(data["args"]["lr"], 0.5);
  EXPECT_TRUE(data["args"]["nothing"].is_null());
  EXPECT_EQ(data["list"][1]["deep"][kTensorKey], "list.1.deep");
  EXPECT_EQ(data["model"]["_modules"]["blocks"]["_modules"]["1"]["width"], 7);
  // 8-bit signed integers have no DType: known to be a tensor, no more.
  EXPECT_EQ(data["int8"], json({{kClassKey, "torch.Tensor"}}));
}

INSTANTIATE_TEST_SUITE_P(AllContainers, ModernFile,
                         testing::Values("modern.pt", "modern_legacy.pt",
                                         "modern_protocol4.pt"));

}  // namespace
}  // namespace txl
