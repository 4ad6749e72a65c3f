#include "tests/model/torch/golden_case.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "model/checkpoint/safetensors.h"
#include "tests/model/golden_paths.h"

namespace txl {
namespace {

std::string ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

template <typename T>
T OrThrow(absl::StatusOr<T> value) {
  if (!value.ok()) throw std::runtime_error(value.status().ToString());
  return *std::move(value);
}

at::Tensor ReadTensor(const SafetensorsReader& reader, const std::string& name,
                      at::ScalarType dtype) {
  const TensorInfo& info = reader.tensors().at(name);
  const absl::Span<const uint8_t> bytes = reader.Bytes(info);
  return at::from_blob(const_cast<uint8_t*>(bytes.data()), info.shape, dtype)
      .clone();
}

}  // namespace

std::vector<std::string> GoldenCaseNames() {
  return {kGoldenCases.begin(), kGoldenCases.end()};
}

GoldenCase LoadGoldenCase(const std::string& name, at::ScalarType dtype) {
  const std::string folder = GoldenDirectory(name);
  GoldenCase golden;
  golden.name = name;
  const std::string text = ReadText(folder + "/config.json");
  golden.config = OrThrow(ParseModelConfig(text, name));
  LoadOptions options = {.dtype = dtype};
  golden.weights = OrThrow(
      LoadWeights(golden.config, folder + "/model.safetensors", options));
  const std::unique_ptr<SafetensorsReader> expected =
      OrThrow(SafetensorsReader::Open(folder + "/expected.safetensors"));
  const at::Tensor tokens = ReadTensor(*expected, "tokens", at::kLong);
  const int64_t* ids = tokens.const_data_ptr<int64_t>();
  golden.tokens.assign(ids, ids + tokens.numel());
  const at::Tensor segments = ReadTensor(*expected, "segments", at::kLong);
  const int64_t* lengths = segments.const_data_ptr<int64_t>();
  golden.segments.assign(lengths, lengths + segments.numel());
  golden.stepwise = ReadTensor(*expected, "logprobs_stepwise", at::kDouble);
  const double observed = nlohmann::json::parse(
      text)["observed"]["original_float32_vs_float64_max_abs"];
  golden.tolerance = dtype == at::kDouble ? 1e-9 : std::max(2e-5, 3 * observed);
  return golden;
}

}  // namespace txl
