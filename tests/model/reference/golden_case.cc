#include "tests/model/reference/golden_case.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "model/checkpoint/safetensors.h"

namespace txl {
namespace {

std::filesystem::path GoldenFolder() {
  const char* data = std::getenv("TXL_TEST_DATA");
  return std::filesystem::path(data != nullptr ? data : "tests") / "golden";
}

std::map<std::string, at::Tensor> ReadExpected(const std::string& path) {
  const auto reader = SafetensorsReader::Open(path);
  EXPECT_TRUE(reader.ok()) << reader.status();
  std::map<std::string, at::Tensor> tensors;
  if (!reader.ok()) return tensors;
  for (const auto& [name, info] : (*reader)->tensors()) {
    at::Tensor tensor = at::empty(
        info.shape, info.dtype == DType::kI64 ? at::kLong : at::kDouble);
    const auto bytes = (*reader)->Bytes(info);
    EXPECT_EQ(bytes.size(), tensor.nbytes()) << name;
    std::memcpy(tensor.mutable_data_ptr(), bytes.data(),
                std::min(bytes.size(), tensor.nbytes()));
    tensors[name] = tensor;
  }
  return tensors;
}

}  // namespace

std::vector<std::string> GoldenCaseNames() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator(GoldenFolder(), error)) {
    if (entry.is_directory()) names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string GoldenCasePath(const std::string& name) {
  return GoldenFolder() / name;
}

GoldenCase LoadGoldenCase(const std::string& name, at::ScalarType dtype) {
  const std::string folder = GoldenCasePath(name);
  std::ostringstream text;
  text << std::ifstream(folder + "/config.json").rdbuf();
  GoldenCase golden;
  auto config = ParseModelConfig(text.str(), folder + "/config.json");
  EXPECT_TRUE(config.ok()) << config.status();
  if (!config.ok()) return golden;
  golden.config = *config;
  auto weights = LoadWeights(golden.config, folder + "/model.safetensors",
                             {dtype, at::kCPU});
  EXPECT_TRUE(weights.ok()) << weights.status();
  if (weights.ok()) golden.weights = *std::move(weights);
  golden.expected = ReadExpected(folder + "/expected.safetensors");
  golden.original_float32_error = nlohmann::json::parse(
      text.str())["observed"]["original_float32_vs_float64_max_abs"];
  return golden;
}

double MaxDifference(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes()) return std::numeric_limits<double>::infinity();
  if (a.numel() == 0) return 0;
  const double difference =
      (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
  return difference >= 0 ? difference : std::numeric_limits<double>::infinity();
}

}  // namespace txl
