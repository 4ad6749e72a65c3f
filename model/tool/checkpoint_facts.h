#pragma once

// What convert and inspect say about a checkpoint.

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <ostream>

#include "model/config/model_config.h"
#include "model/convert/plan_conversion.h"

namespace txl {

// --format and --spec.
void AddPlanFlags(CLI::App& app, PlanOptions& options);

// Bytes of a session's segment memory by dtype of the server.
nlohmann::ordered_json MemoryBytes(const ModelConfig& config);

// kind, family, container, parameters, serving_window,
// memory_bytes_per_session, config, origins, oddities, tensors.
nlohmann::ordered_json CheckpointFacts(const PlannedConversion& conversion);

// Facts as text: scalars a line each, objects and tensors indented below their
// name.
void PrintFacts(const nlohmann::ordered_json& facts, std::ostream& out);

// The facts without the list of tensors; every field with who said it.
void PrintSummary(const PlannedConversion& conversion, std::ostream& out);

}  // namespace txl
