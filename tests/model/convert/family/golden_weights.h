#pragma once

// The weights of a golden case under their canonical names, plain loops to
// lay them out as a code base stores them, and the comparison of a plan with
// them.

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "model/convert/container/native_checkpoint.h"
#include "model/convert/family/family.h"

namespace txl {

// Row-major values.
struct Values {
  std::vector<int64_t> shape;
  std::vector<float> data;
};

struct GoldenWeights {
  nlohmann::json config;  // config.json
  std::map<std::string, Values> tensors;

  const Values& at(const std::string& name) const { return tensors.at(name); }
  const Values& layer(int64_t l, const std::string& name) const;
  int64_t layers() const { return config["n_layer"]; }
};

std::string GoldenFile(absl::string_view path);  // under tests/golden/
GoldenWeights LoadGolden(absl::string_view golden_case);

// Layouts. `parts` agree in all dimensions but the first.
Values TransposedValues(const Values& matrix);
Values BelowEachOther(const std::vector<Values>& parts);
Values RowsOf(const Values& values, int64_t begin, int64_t end);
Values ColumnsOf(const Values& matrix, int64_t begin, int64_t end);
Values Reshaped(Values values, std::vector<int64_t> shape);
Values ReversedRows(const Values& values);

StoredTensor Stored(const Values& values);
// A checkpoint in memory, as a state dict under `place` ("model." or "").
NativeCheckpoint Checkpoint(const std::map<std::string, Values>& tensors,
                            const std::string& place = "");

// What a planned tensor holds, joined, as 32-bit floats.
Values PlannedValues(const PlannedTensor& planned);

// Plans `checkpoint` with the family of its signature, which must be `family`.
absl::StatusOr<ConversionPlan> PlanOf(absl::string_view family,
                                      const NativeCheckpoint& checkpoint,
                                      const nlohmann::json& spec = nullptr);

// The plan has every tensor of `golden`, bit for bit (tied ones and
// pos.inv_freq may be left out), no other, and all that its config implies.
void ExpectWeights(const ConversionPlan& plan, const GoldenWeights& golden);
// Planning fails in one line naming the checkpoint when any tensor is missing
// (but those of `may_be_absent`), has another shape or has no numbers.
void ExpectEachTensorIsChecked(absl::string_view family,
                               const NativeCheckpoint& checkpoint,
                               const std::set<std::string>& may_be_absent = {});
// plan.config is golden.config.
void ExpectConfig(const ConversionPlan& plan, const GoldenWeights& golden);

}  // namespace txl
