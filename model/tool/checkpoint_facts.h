#pragma once

// What convert and inspect say about a checkpoint.

#include <CLI/CLI.hpp>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>

#include "model/base/number_format.h"
#include "model/checkpoint/safetensors.h"
#include "model/config/model_config.h"
#include "model/convert/convert.h"
#include "model/cpu/attention_form.h"

namespace txl {

// --format and --spec.
void AddPlanFlags(CLI::App& app, PlanOptions& options);

// Bytes of a session's segment memory by dtype of the server.
nlohmann::ordered_json MemoryBytes(const ModelConfig& config);

// What the native step takes in each of its number formats and forms, from
// shapes alone. M: memory_f32, memory_bf16, memory_f16; D: f32, bf16, f16, the
// format of the derived rows.
//   native_form                {M: {derived_D: form that a server takes}}
//   native_weight_bytes        {form: {f32, bf16, f16, int8}}
//   native_position_key_bytes  {D}
//   native_slot_bytes          {M: {absorbed, projected_D}}, a session's rows
//                              with the default number of spare ones
// REQUIRES: CheckCanonicalTensors is OK.
nlohmann::ordered_json NativeFacts(
    const ModelConfig& config,
    const std::map<std::string, TensorInfo>& tensors);

// kind, family, container, parameters, serving_window,
// memory_bytes_per_session, NativeFacts, config, origins, oddities, tensors.
nlohmann::ordered_json CheckpointFacts(const PlannedConversion& conversion);

// Facts as text: scalars a line each, objects indented below their name,
// objects in objects on one line, bytes in units that people read. Tensors are
// listed where `tensors`, else counted.
void PrintFacts(const nlohmann::ordered_json& facts, bool tensors,
                std::ostream& out);

// The facts without the list of tensors and what a step takes; every field with
// who said it.
void PrintSummary(const PlannedConversion& conversion, std::ostream& out);

// What the native CPU step will take, from shapes alone: no weight is read,
// nothing is allocated.

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
