#include "tests/end_to_end/golden_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "model/checkpoint/safetensors.h"
#include "tests/end_to_end/server_process.h"
#include "tests/model/golden_paths.h"

namespace txl::testing {
namespace {

template <typename T>
std::vector<T> Read(const SafetensorsReader& reader, const char* name) {
  const TensorInfo& info = reader.tensors().at(name);
  std::vector<T> values(info.numel());
  const absl::Span<const uint8_t> bytes = reader.Bytes(info);
  EXPECT_EQ(bytes.size(), values.size() * sizeof(T)) << name;
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

}  // namespace

std::vector<std::string> GoldenCaseNames() {
  return {kGoldenCases.begin(), kGoldenCases.end()};
}

GoldenCase LoadGoldenCase(const std::string& name) {
  GoldenCase golden;
  golden.directory = GoldenModel(name);
  std::ifstream file(golden.directory + "/config.json");
  const nlohmann::json config = nlohmann::json::parse(file);
  golden.vocabulary = config["vocab_size"];
  golden.memory_length = config["mem_len"];
  const double observed =
      config["observed"]["original_float32_vs_float64_max_abs"];
  golden.tolerance = std::max(2e-5, 3 * observed);
  const auto reader =
      SafetensorsReader::Open(golden.directory + "/expected.safetensors");
  EXPECT_TRUE(reader.ok()) << reader.status();
  for (const int64_t id : Read<int64_t>(**reader, "tokens")) {
    golden.tokens.push_back(static_cast<uint32_t>(id));
  }
  golden.logprobs = Read<double>(**reader, "logprobs_stepwise");
  return golden;
}

}  // namespace txl::testing
