#pragma once

// Writes what a trained model directory holds beside its weights.

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "model/config/model_config.h"
#include "model/train/streams.h"

namespace txl {

// Makes the folder when it is missing and writes config.json, tokenizer.json
// (and vocab.json for characters) and generation.json: a session without a
// prompt starts after a line break where the vocabulary has one.
absl::Status WriteModelFiles(const std::string& directory,
                             const ModelConfig& config, const Corpus& corpus);

// Copies what the model directory `from` holds beside weights and n-grams:
// config.json, tokenizer.json with its file, generation.json and kinds.json.
// Makes the folder `to` when it is missing. Errors: PermissionDenied naming the
// file.
absl::Status CopyModelFiles(const std::string& from, const std::string& to);

// Writes a whole text file. Errors: PermissionDenied naming the path.
absl::Status WriteTextFile(const std::string& path, absl::string_view text);

}  // namespace txl
