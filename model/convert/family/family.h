#pragma once

// The code bases that trained Transformer-XLs: how each is recognised and how
// its tensors and choices become ours. One file per family; a family only
// makes a plan of views, nothing is read or written.

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "model/config/model_config.h"
#include "model/convert/container/native_checkpoint.h"

namespace txl {

// A canonical tensor: pieces joined along `axis` in order.
struct PlannedTensor {
  std::vector<StoredTensor> pieces;  // at least one
  int64_t axis = 0;
  std::vector<int64_t> shape() const;
};

// Where the value of a config.json field comes from, strongest first.
enum class FieldOrigin { kWeights, kSpec, kCheckpoint, kFamily };
absl::string_view FieldOriginName(FieldOrigin origin);

struct PlannedField {
  nlohmann::json value;
  FieldOrigin origin = FieldOrigin::kFamily;
};

struct ConversionPlan {
  std::string family;
  ModelConfig config;
  std::map<std::string, PlannedField> fields;  // by config.json name
  // Tensors by canonical name; tied ones are left out.
  std::map<std::string, PlannedTensor> tensors;
  std::vector<std::string> oddities;  // what a reader should know, a line each
};

struct PlanInput {
  const NativeCheckpoint& checkpoint;
  // The configuration that lies beside the checkpoint (config.json of a
  // Hugging Face folder), or null.
  nlohmann::json own_config;
  // --spec: fields of config.json, or null.
  nlohmann::json spec;
};

struct Family {
  absl::string_view id;     // of --format
  absl::string_view about;  // one line for people
  // Whether names (and classes) are this family's. Cheap; never true for two.
  bool (*matches)(const NativeCheckpoint&);
  // Errors: InvalidArgument in one line naming the tensor or field: a missing,
  // unknown or mis-shaped tensor, a value that contradicts the weights.
  absl::StatusOr<ConversionPlan> (*plan)(const PlanInput&);
  // Whether a config.json beside the checkpoint is its own configuration.
  bool reads_config_beside = false;
};

}  // namespace txl
