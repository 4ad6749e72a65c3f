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

  v1::SamplingParams sampling;          // but for what is below
  std::vector<std::string> logit_bias;  // ID=VALUE
  std::vector<uint32_t> allowed_tokens;

  v1::StopConditions stop;  // but for what is below
  std::vector<std::string> stop_texts;
  std::vector<uint32_t> stop_tokens;
  std::optional<std::string> stop_after;  // ID=COUNT

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
