#pragma once

// A model directory: config.json, model.safetensors, and, optionally,
// tokenizer.json with its file, generation.json and kinds.json. All that a
// server opens.

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/checkpoint/weights.h"
#include "model/config/generation_defaults.h"
#include "model/config/model_config.h"
#include "model/sampling/token_kinds.h"
#include "model/text/vocabulary.h"

namespace txl {

struct ModelDirectory {
  std::string path;
  std::string name;  // last component of the path
  ModelConfig config;
  GenerationDefaults generation;
  std::unique_ptr<Vocabulary> vocabulary;  // null: token ids only
  std::shared_ptr<const TokenKinds>
      kinds;  // of kinds.json; null: there is none
  // FingerprintOf; empty: not computed yet.
  std::string fingerprint;
};

// Whether the text of a config.json is of Hugging Face's configuration class,
// which ours never looks like.
bool IsForeignConfig(absl::string_view text);

// Everything but the weights and the fingerprint. Errors name the file, and
// what makes a model directory where there is none.
absl::StatusOr<ModelDirectory> ReadModelDirectory(const std::string& path);

// Lower-case hex SHA-256 over config.json's and model.safetensors' bytes.
absl::StatusOr<std::string> FingerprintOf(const ModelDirectory& directory);

// ReadModelDirectory with the fingerprint.
absl::StatusOr<ModelDirectory> OpenModelDirectory(const std::string& path);

// LoadWeights of PATH/model.safetensors.
absl::StatusOr<Weights> LoadDirectoryWeights(const ModelDirectory& directory,
                                             const LoadOptions& options);

}  // namespace txl
