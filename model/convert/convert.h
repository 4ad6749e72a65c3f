#pragma once

// Checkpoint in, model directory out: from a path to a checked plan, and from
// the plan to files.

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/checkpoint/safetensors.h"
#include "model/convert/container/native_checkpoint.h"
#include "model/convert/family/family.h"

namespace txl {

struct PlanOptions {
  std::string source;           // checkpoint: a file or a folder
  std::string format = "auto";  // id of a family
  std::string spec_path;        // a file with fields of config.json; or empty
};

struct PlannedConversion {
  NativeCheckpoint checkpoint;
  // The plan's tensors are float, of one dtype each, and fit its config.
  ConversionPlan plan;
};

// Opens the checkpoint, finds its family, reads what lies beside it, plans, and
// compares the plan with the canonical list. Nothing of a tensor is read but
// where tied copies are compared. Errors: NotFound, InvalidArgument, DataLoss
// in one line naming the file.
absl::StatusOr<PlannedConversion> PlanConversion(const PlanOptions& options);

// The planned tensors as a table of contents (begin and end are 0).
std::map<std::string, TensorInfo> PlannedInfos(const ConversionPlan& plan);

// Numbers that the converted model holds; tied tensors once. Views that the
// plan repeats (u and v of all layers) count once.
int64_t UniqueParameters(const ConversionPlan& plan);

// The text of config.json: the model's fields, "family", "container" and
// "origins" (field -> who said so). The same plan gives the same text.
std::string ConvertedConfig(const PlannedConversion& conversion);

struct ConvertOptions {
  PlanOptions plan;
  std::string directory;       // model directory to write; must not exist
  std::string tokenizer_path;  // vocabulary file; empty: look for one
  // Called after each written tensor with the bytes written and in all; may be
  // null.
  std::function<void(absl::string_view name, uint64_t done, uint64_t all)>
      progress;
};

struct ConvertReport {
  PlannedConversion conversion;
  std::string vocabulary;  // where it was found; empty: none, ids only
};

// Writes config.json, model.safetensors (each tensor in its source's dtype) and
// the vocabulary's files; the directory appears whole or not at all. Converting
// again gives the same bytes. Memory: one tensor. Errors: as PlanConversion,
// FindVocabulary, WriteTensorFile; AlreadyExists for the directory.
absl::StatusOr<ConvertReport> Convert(const ConvertOptions& options);

}  // namespace txl
