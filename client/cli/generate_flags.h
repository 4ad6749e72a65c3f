#pragma once

// The flags of a turn, and the request that they make. Flags that are not given
// leave their field absent, so that the server's defaults hold.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "txl/v1/generation_service.pb.h"

namespace CLI {
class App;
}

namespace txl::cli {

struct GenerateFlags {
  std::string session;
  std::optional<std::string> prompt;  // text; "-" is standard input
  std::string prompt_file;            // empty: none
  std::optional<std::string> midi_file;
  std::string unknown;  // "": not given
  std::vector<uint32_t> tokens;
  std::string request_id;
  std::optional<int64_t> expected_position;

  std::optional<double> temperature;
  std::optional<int64_t> top_k;
  std::optional<double> top_p;
  std::optional<double> min_p;
  std::optional<double> typical_p;
  std::optional<double> repetition_penalty;
  std::optional<double> presence_penalty;
  std::optional<double> frequency_penalty;
  std::optional<int32_t> penalty_window;
  std::vector<std::string> logit_bias;  // ID=VALUE
  std::vector<uint32_t> allowed_tokens;
  std::optional<bool> follow_kinds;
  std::optional<uint64_t> seed;
  std::optional<int32_t> min_tokens;

  std::optional<int32_t> max_tokens;
  std::vector<std::string> stop_texts;
  std::vector<uint32_t> stop_tokens;
  std::optional<std::string> stop_after;  // ID=COUNT
  bool ignore_end_token = false;
  bool include_stop_text = false;

  std::optional<uint32_t> logprobs;
  std::vector<uint32_t> logprob_tokens;
  bool token_bytes = false;
};

// --temperature ... --min-tokens, --max-tokens, --stop ...: how to sample and
// when to stop.
void AddSamplingFlags(CLI::App& command, GenerateFlags* flags);
// --session, --prompt, --prompt-file, --midi, --unknown, --tokens,
// --request-id, --expected-position.
void AddPromptFlags(CLI::App& command, GenerateFlags* flags);
// --logprobs, --logprob-tokens, --token-bytes.
void AddOutputFlags(CLI::App& command, GenerateFlags* flags);

// Reads --prompt - and --prompt-file into `prompt`. Errors: of ReadInput.
absl::Status ReadPrompt(GenerateFlags* flags);

// The prompt is taken as it stands. Errors: InvalidArgument for a --logit-bias
// that is not ID=VALUE and a --stop-after that is not ID=COUNT.
absl::StatusOr<v1::GenerateRequest> MakeGenerateRequest(
    const GenerateFlags& flags);

}  // namespace txl::cli
