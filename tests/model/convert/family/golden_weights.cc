#include "tests/model/convert/family/golden_weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "model/checkpoint/canonical_tensors.h"
#include "model/checkpoint/safetensors.h"
#include "model/convert/family/family.h"
#include "tests/model/convert/family/stored_tensors.h"

namespace txl {
namespace {

int64_t Product(const std::vector<int64_t>& shape, size_t from) {
  int64_t product = 1;
  for (size_t i = from; i < shape.size(); ++i) product *= shape[i];
  return product;
}

float HalfToFloat(uint16_t half) {
  const int exponent = (half >> 10) & 31, mantissa = half & 1023;
  const float magnitude =
      exponent == 0
          ? std::ldexp(static_cast<float>(mantissa), -24)
          : std::ldexp(static_cast<float>(1024 + mantissa), exponent - 25);
  return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

std::vector<float> Floats(DType dtype, const std::string& bytes) {
  std::vector<float> values(bytes.size() / DTypeBytes(dtype));
  if (dtype == DType::kF32) {
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  EXPECT_EQ(DTypeName(dtype), DTypeName(DType::kF16));
  for (size_t i = 0; i < values.size(); ++i) {
    uint16_t half = 0;
    std::memcpy(&half, bytes.data() + 2 * i, 2);
    values[i] = HalfToFloat(half);
  }
  return values;
}

// The name that a tied tensor may be left out for; "" for others.
std::string TiedTo(const std::string& name, const ModelConfig& config) {
  if (!absl::StartsWith(name, "head.")) return "";
  const std::string input = absl::StrReplaceAll(name, {{"head.", "emb."}});
  if (absl::EndsWith(name, ".proj")) {
    const size_t bin = name[5] - '0';
    const bool tied = bin < config.tie_projs.size() && config.tie_projs[bin];
    return tied ? input : "";
  }
  const bool is_matrix =
      absl::EndsWith(name, ".w") && !absl::StrContains(name, "cluster");
  return is_matrix && config.tie_weight ? input : "";
}

}  // namespace

const Values& GoldenWeights::layer(int64_t l, const std::string& name) const {
  return at(absl::StrCat("layer.", l, ".", name));
}

std::string GoldenFile(absl::string_view path) {
  const char* data = std::getenv("TXL_TEST_DATA");
  return absl::StrCat(data != nullptr ? data : "tests", "/golden/", path);
}

GoldenWeights LoadGolden(absl::string_view golden_case) {
  GoldenWeights golden;
  std::ifstream config(GoldenFile(absl::StrCat(golden_case, "/config.json")));
  golden.config = nlohmann::json::parse(config);
  const auto reader = *SafetensorsReader::Open(
      GoldenFile(absl::StrCat(golden_case, "/model.safetensors")));
  for (const auto& [name, info] : reader->tensors()) {
    const auto bytes = reader->Bytes(info);
    golden.tensors[name] = {info.shape,
                            Floats(info.dtype, {bytes.begin(), bytes.end()})};
  }
  return golden;
}

Values TransposedValues(const Values& matrix) {
  const int64_t rows = matrix.shape.at(0), columns = matrix.shape.at(1);
  Values out = {{columns, rows}, std::vector<float>(matrix.data.size())};
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      out.data[c * rows + r] = matrix.data[r * columns + c];
    }
  }
  return out;
}

Values BelowEachOther(const std::vector<Values>& parts) {
  Values out = {parts.at(0).shape, {}};
  out.shape[0] = 0;
  for (const Values& part : parts) {
    out.shape[0] += part.shape[0];
    out.data.insert(out.data.end(), part.data.begin(), part.data.end());
  }
  return out;
}

Values RowsOf(const Values& values, int64_t begin, int64_t end) {
  const int64_t row = Product(values.shape, 1);
  Values out = {
      values.shape,
      {values.data.begin() + begin * row, values.data.begin() + end * row}};
  out.shape[0] = end - begin;
  return out;
}

Values ColumnsOf(const Values& matrix, int64_t begin, int64_t end) {
  return TransposedValues(RowsOf(TransposedValues(matrix), begin, end));
}

Values Reshaped(Values values, std::vector<int64_t> shape) {
  EXPECT_EQ(Product(shape, 0), static_cast<int64_t>(values.data.size()));
  values.shape = std::move(shape);
  return values;
}

Values ReversedRows(const Values& values) {
  std::vector<Values> rows;
  for (int64_t r = values.shape[0]; r > 0; --r) {
    rows.push_back(RowsOf(values, r - 1, r));
  }
  return BelowEachOther(rows);
}

StoredTensor Stored(const Values& values) {
  return FloatTensor(values.shape, values.data);
}

NativeCheckpoint Checkpoint(const std::map<std::string, Values>& tensors,
                            const std::string& place) {
  std::map<std::string, StoredTensor> stored;
  for (const auto& [name, values] : tensors) {
    stored[place + name] = Stored(values);
  }
  NativeCheckpoint checkpoint = StateDict(std::move(stored));
  if (!place.empty()) checkpoint.data = nlohmann::json::object();
  return checkpoint;
}

Values PlannedValues(const PlannedTensor& planned) {
  std::vector<Values> parts;
  for (const StoredTensor& piece : planned.pieces) {
    const auto bytes = ReadTensor(piece);
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    if (!bytes.ok()) return {};
    Values part = {piece.shape, Floats(piece.dtype, *bytes)};
    parts.push_back(planned.axis == 0 ? part : TransposedValues(part));
  }
  const Values joined = BelowEachOther(parts);
  return planned.axis == 0 ? joined : TransposedValues(joined);
}

absl::StatusOr<ConversionPlan> PlanOf(absl::string_view family,
                                      const NativeCheckpoint& checkpoint,
                                      const nlohmann::json& spec) {
  const auto chosen = ChooseFamily("auto", checkpoint);
  if (!chosen.ok()) return chosen.status();
  EXPECT_EQ((*chosen)->id, family);
  return (*chosen)->plan({checkpoint, nullptr, spec});
}

void ExpectWeights(const ConversionPlan& plan, const GoldenWeights& golden) {
  for (const auto& [name, expected] : golden.tensors) {
    const bool planned = plan.tensors.contains(name);
    if (!planned && name == "pos.inv_freq") continue;
    const std::string source = planned ? name : TiedTo(name, plan.config);
    if (!plan.tensors.contains(source)) {
      ADD_FAILURE() << name << " is not in the plan";
      continue;
    }
    const PlannedTensor& tensor = plan.tensors.at(source);
    EXPECT_EQ(tensor.shape(), expected.shape) << name;
    EXPECT_TRUE(PlannedValues(tensor).data == expected.data)
        << name << " has other values";
  }
  std::map<std::string, TensorInfo> written;
  for (const auto& [name, tensor] : plan.tensors) {
    EXPECT_TRUE(golden.tensors.contains(name)) << name << " is too much";
    written[name].shape = tensor.shape();
  }
  const absl::Status complete =
      CheckCanonicalTensors(plan.config, written, "plan");
  EXPECT_TRUE(complete.ok()) << complete;
}

void ExpectEachTensorIsChecked(absl::string_view family,
                               const NativeCheckpoint& checkpoint,
                               const std::set<std::string>& may_be_absent) {
  const auto chosen = ChooseFamily(family, checkpoint);
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  const auto expect_refused = [&](const NativeCheckpoint& damaged,
                                  const std::string& what) {
    const auto plan = (*chosen)->plan({damaged, nullptr, nullptr});
    ASSERT_FALSE(plan.ok()) << what;
    EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument) << what;
    EXPECT_TRUE(absl::StartsWith(plan.status().message(), damaged.path + ": "))
        << plan.status();
    EXPECT_FALSE(absl::StrContains(plan.status().message(), "\n"))
        << plan.status();
  };
  for (const auto& [name, tensor] : checkpoint.tensors) {
    NativeCheckpoint damaged = checkpoint;
    if (!may_be_absent.contains(name)) {
      damaged.tensors.erase(name);
      expect_refused(damaged, "without " + name);
    }
    for (const Values& other : {Values{{1, 1, 1, 1, 1}, {7}}, Values{{}, {7}},
                                Values{{0, 0}, {}}, Values{{1}, {7}}}) {
      damaged.tensors[name] = Stored(other);
      expect_refused(damaged, name + " of another shape");
    }
  }
}

void ExpectConfig(const ConversionPlan& plan, const GoldenWeights& golden) {
  const auto expected = ParseModelConfig(golden.config.dump(), "config.json");
  ASSERT_TRUE(expected.ok()) << expected.status();
  EXPECT_EQ(nlohmann::json::parse(ModelConfigToJson(plan.config)),
            nlohmann::json::parse(ModelConfigToJson(*expected)));
}

}  // namespace txl
