// Every golden model directory is loaded and compared with its files as
// nlohmann::json and plain bytes show them.

#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>

#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/checkpoint/model_directory.h"
#include "model/checkpoint/safetensors.h"
#include "tests/model/checkpoint/raw_safetensors.h"
#include "tests/model/golden_paths.h"

namespace txl {
namespace {

using nlohmann::json;

// A safetensors file taken apart without the reader under test.
struct RawFile {
  json header;
  std::string data;
};

RawFile TakeApart(const std::string& path) {
  const std::string file = ReadWholeFile(path);
  uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof(length));
  return {json::parse(file.substr(8, length)), file.substr(8 + length)};
}

class GoldenDirectories : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    folder_ = GoldenDirectory(GetParam());
    auto directory = OpenModelDirectory(folder_);
    ASSERT_TRUE(directory.ok()) << directory.status();
    directory_ = *std::move(directory);
    auto weights = LoadDirectoryWeights(directory_, {});
    ASSERT_TRUE(weights.ok()) << weights.status();
    weights_ = *std::move(weights);
    for (const auto& [name, tensor] : weights_.Named()) named_[name] = tensor;
    raw_ = TakeApart(folder_ + "/model.safetensors");
    config_ = json::parse(ReadWholeFile(folder_ + "/config.json"));
  }

  // Whether head.{bin}.{part} says that it is emb.{bin}.{part}.
  bool IsTied(const std::string& part, int64_t bin) const {
    if (part == "w") return config_["tie_weight"].get<bool>();
    const json& ties = config_["tie_projs"];
    return !ties.empty() && ties[bin].get<bool>();
  }

  std::string folder_;
  ModelDirectory directory_;
  Weights weights_;
  std::map<std::string, at::Tensor> named_;
  RawFile raw_;
  json config_;
};

TEST_P(GoldenDirectories, EveryTensorOfTheFileIsThereWithItsShapeAndBytes) {
  std::set<std::string> names;
  for (const auto& [name, entry] : raw_.header.items()) {
    if (name == "__metadata__") continue;
    names.insert(name);
    ASSERT_TRUE(named_.contains(name)) << name;
    const at::Tensor& tensor = named_.at(name);
    EXPECT_EQ(tensor.sizes().vec(), entry["shape"].get<std::vector<int64_t>>())
        << name;
    EXPECT_EQ(tensor.scalar_type(), at::kFloat) << name;
    ASSERT_TRUE(tensor.is_contiguous()) << name;
    const auto offsets = entry["data_offsets"].get<std::vector<size_t>>();
    ASSERT_EQ(tensor.nbytes(), offsets[1] - offsets[0]) << name;
    EXPECT_EQ(std::memcmp(tensor.const_data_ptr(),
                          raw_.data.data() + offsets[0], tensor.nbytes()),
              0)
        << name;
  }
  // The golden files hold tied tensors twice, so nothing may be added.
  for (const auto& [name, tensor] : named_) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

TEST_P(GoldenDirectories, TiedTensorsShareStorageAndOthersDoNot) {
  const int64_t bins = config_["cutoffs"].size() + 1;
  for (int64_t bin = 0; bin < bins; ++bin) {
    for (const std::string part : {"w", "proj"}) {
      const std::string emb = absl::StrCat("emb.", bin, ".", part);
      const std::string head = absl::StrCat("head.", bin, ".", part);
      ASSERT_EQ(named_.contains(emb), named_.contains(head)) << emb;
      if (!named_.contains(emb)) continue;
      EXPECT_EQ(named_.at(emb).data_ptr() == named_.at(head).data_ptr(),
                IsTied(part, bin))
          << head;
    }
  }
}

TEST_P(GoldenDirectories, BytesCountsEveryTiedTensorOnce) {
  int64_t expected = 0;
  for (const auto& [name, entry] : raw_.header.items()) {
    if (name == "__metadata__") continue;
    const bool of_head = absl::StartsWith(name, "head.") &&
                         !absl::StartsWith(name, "head.cluster.");
    const std::string part = name.substr(name.rfind('.') + 1);
    if (of_head && (part == "w" || part == "proj") &&
        IsTied(part, std::stoll(name.substr(5)))) {
      continue;
    }
    const auto offsets = entry["data_offsets"].get<std::vector<int64_t>>();
    expected += offsets[1] - offsets[0];
  }
  EXPECT_EQ(weights_.Bytes(), expected);
}

TEST_P(GoldenDirectories, InDoubleTheWeightsAreTheSameNumbers) {
  const auto wide = LoadDirectoryWeights(directory_, {.dtype = at::kDouble});
  ASSERT_TRUE(wide.ok()) << wide.status();
  const auto wide_named = wide->Named();
  ASSERT_EQ(wide_named.size(), named_.size());
  for (const auto& [name, tensor] : wide_named) {
    EXPECT_EQ(tensor.scalar_type(), at::kDouble) << name;
    EXPECT_TRUE(at::equal(tensor, named_.at(name).to(at::kDouble))) << name;
  }
}

TEST_P(GoldenDirectories, SavedWithoutTheTiedOnesTheyLoadAgain) {
  const std::string path = FreshTempFolder("again") + "/model.safetensors";
  ASSERT_TRUE(SaveWeights(weights_, directory_.config, path, at::kFloat).ok());
  const json header = TakeApart(path).header;
  for (const auto& [name, entry] : header.items()) {
    if (!absl::StartsWith(name, "head.") ||
        absl::StartsWith(name, "head.cluster")) {
      continue;
    }
    const std::string part = name.substr(name.rfind('.') + 1);
    if (part == "b") continue;
    EXPECT_FALSE(IsTied(part, std::stoll(name.substr(5)))) << name;
  }
  const auto again = LoadWeights(directory_.config, path, {});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->Bytes(), weights_.Bytes());
  const auto again_named = again->Named();
  ASSERT_EQ(again_named.size(), named_.size());
  for (const auto& [name, tensor] : again_named) {
    EXPECT_TRUE(at::equal(tensor, named_.at(name))) << name;
  }
}

TEST_P(GoldenDirectories, AreServedWithTokenIdsOnly) {
  EXPECT_EQ(directory_.name, GetParam());
  EXPECT_EQ(directory_.path, folder_);
  EXPECT_EQ(directory_.vocabulary, nullptr);
  EXPECT_TRUE(directory_.generation.start_tokens.empty());
}

INSTANTIATE_TEST_SUITE_P(All, GoldenDirectories,
                         testing::ValuesIn(kGoldenCases), [](const auto& info) {
                           return GoldenParamName(info.param);
                         });

}  // namespace
}  // namespace txl
