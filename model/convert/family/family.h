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

// What each family's file offers to the table in family.cc; the
// contracts are those of Family::matches and Family::plan.

bool MatchesKimiyoung(const NativeCheckpoint& checkpoint);
absl::StatusOr<ConversionPlan> PlanKimiyoung(const PlanInput& input);

bool MatchesHuggingFace(const NativeCheckpoint& checkpoint);
absl::StatusOr<ConversionPlan> PlanHuggingFace(const PlanInput& input);

bool MatchesNvidia(const NativeCheckpoint& checkpoint);
absl::StatusOr<ConversionPlan> PlanNvidia(const PlanInput& input);

bool MatchesPtbArticle(const NativeCheckpoint& checkpoint);
absl::StatusOr<ConversionPlan> PlanPtbArticle(const PlanInput& input);

bool MatchesCompoundWord(const NativeCheckpoint& checkpoint);
absl::StatusOr<ConversionPlan> PlanCompoundWord(const PlanInput& input);

bool MatchesSorter(const NativeCheckpoint& checkpoint);
absl::StatusOr<ConversionPlan> PlanSorter(const PlanInput& input);

bool MatchesLabml(const NativeCheckpoint& checkpoint);
absl::StatusOr<ConversionPlan> PlanLabml(const PlanInput& input);

bool MatchesMegatron(const NativeCheckpoint& checkpoint);
absl::StatusOr<ConversionPlan> PlanMegatron(const PlanInput& input);

bool MatchesFastai(const NativeCheckpoint& checkpoint);
absl::StatusOr<ConversionPlan> PlanFastai(const PlanInput& input);

bool MatchesTensorFlow(const NativeCheckpoint& checkpoint);
absl::StatusOr<ConversionPlan> PlanTensorFlow(const PlanInput& input);

bool MatchesRemi(const NativeCheckpoint& checkpoint);
absl::StatusOr<ConversionPlan> PlanRemi(const PlanInput& input);

// Which family a checkpoint is of.

// All of them, in the order of the documents.
absl::Span<const Family> Families();

// The family `format` ("auto": by its signature). Errors: InvalidArgument with
// the known ids, or saying what was found instead of a signature.
absl::StatusOr<const Family*> ChooseFamily(absl::string_view format,
                                           const NativeCheckpoint& checkpoint);

}  // namespace txl
