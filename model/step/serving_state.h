#pragma once

// What every serving step says and checks in the same words.

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "model/config/model_config.h"
#include "model/memory/ring.h"
#include "model/memory/state_image.h"

namespace txl {

// The options that every step has. Errors: InvalidArgument naming the option.
inline absl::Status CheckSlots(int64_t slots, int64_t spare_rows) {
  if (slots < 1) {
    return absl::InvalidArgumentError("slots: must be at least 1");
  }
  if (spare_rows < 8) {
    return absl::InvalidArgumentError("spare_rows: must be at least 8");
  }
  return absl::OkStatus();
}

// The ring of a served model with `spare` rows beyond its memory.
inline RingGeometry ServingRing(const ModelConfig& config, int64_t spare) {
  RingGeometry ring;
  ring.mem_len = config.mem_len;
  ring.spare = spare;
  ring.window = config.serving_window();
  ring.zero_start = config.mem_init == MemoryInit::kZeros;
  return ring;
}

// Identity of its states, but for row_dtype and kernel, which the step knows.
inline StateIdentity ServingIdentity(const ModelConfig& config,
                                     const std::string& fingerprint) {
  StateIdentity identity;
  identity.fingerprint = fingerprint;
  identity.window = config.serving_window();
  identity.mem_len = config.mem_len;
  identity.d_model = config.d_model;
  identity.n_layer = config.n_layer;
  identity.zero_start = config.mem_init == MemoryInit::kZeros;
  return identity;
}

}  // namespace txl
