#pragma once

// Checkpoint in, model directory out.

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/convert/plan_conversion.h"

namespace txl {

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
