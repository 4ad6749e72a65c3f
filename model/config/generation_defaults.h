#pragma once

// generation.json of a model directory: what a request inherits when it says
// nothing.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/config/chat_format.h"
#include "model/sampling/sampling_params.h"

namespace txl {

struct GenerationDefaults {
  // Fed before the first turn of a session that has no tokens and no prompt.
  std::vector<int32_t> start_tokens;
  // Sampling one of them ends the turn with END_TOKEN.
  std::vector<int32_t> end_tokens;
  std::optional<int32_t> max_tokens;
  std::vector<std::string> stop_texts;
  std::optional<ChatFormat> chat;  // absent: the model continues text alone
  // Unset fields fall through to the API's defaults.
  SamplingOverrides sampling;
};

// Parses generation.json; ids are checked against vocab_size. Unknown fields
// are errors here: a misspelt default would otherwise be lost silently.
absl::StatusOr<GenerationDefaults> ParseGenerationDefaults(
    absl::string_view json, absl::string_view origin, int64_t vocab_size);

std::string GenerationDefaultsToJson(const GenerationDefaults& defaults);

}  // namespace txl
