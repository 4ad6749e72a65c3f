#pragma once

// What the native CPU step will take, from shapes alone: no weight is read,
// nothing is allocated.

#include <cstdint>
#include <map>
#include <string>

#include "model/base/number_format.h"
#include "model/checkpoint/safetensors.h"
#include "model/config/model_config.h"
#include "model/cpu/attention_form.h"

namespace txl {

// Packed matrices (rows padded to whole panels, int8 and int4 with their
// scales), biases and norms; tied tables once. The forms pack keys and values
// apart. Without positional keys, whose format is that of the derived rows.
// REQUIRES: CheckCanonicalTensors is OK.
int64_t NativeWeightBytes(const ModelConfig& config,
                          const std::map<std::string, TensorInfo>& tensors,
                          AttentionForm form, NumberFormat format);

// The positional keys of all layers and heads, shared by all sessions, with the
// position biases of models that have tables.
int64_t NativePositionKeyBytes(const ModelConfig& config, NumberFormat derived);

}  // namespace txl
