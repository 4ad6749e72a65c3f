#pragma once

// What rpc knows of the model: plain values that the composition root copies
// from the model directory and the engine. Constant while the server runs.

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "model/config/generation_defaults.h"
#include "model/config/model_config.h"
#include "model/music/midi_encoder.h"
#include "model/sampling/token_kinds.h"
#include "model/text/vocabulary.h"

namespace txl {

struct ModelFacts {
  std::string name;         // of the model directory
  std::string fingerprint;  // SHA-256, lower-case hex
  ModelConfig config;
  GenerationDefaults generation;
  const Vocabulary* vocabulary = nullptr;   // null: token ids only; outlives us
  std::shared_ptr<const TokenKinds> kinds;  // null: it has none
  // An error: why the model takes no MIDI files.
  absl::StatusOr<MidiEncoder> midi =
      absl::FailedPreconditionError("the model has no tokenizer");

  // What the engine says of itself.
  int64_t memory_length = 0;  // rows of segment memory for each layer
  int64_t window = 0;         // positions that a token sees, itself included
  int64_t bytes_per_session = 0;
  std::string device;
  std::string kernel;
  std::string form;
  std::string weight_dtype;
  std::string memory_dtype;

  std::string server_version;
};

}  // namespace txl
