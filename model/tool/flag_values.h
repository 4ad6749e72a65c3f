#pragma once

// Names that flags take for the model's enumerations.

#include <c10/core/ScalarType.h>

#include <CLI/CLI.hpp>

#include "model/config/model_config.h"
#include "model/train/corpus.h"

namespace txl {

CLI::CheckedTransformer NormNames();        // pre, post
CLI::CheckedTransformer VocabularyNames();  // bytes, characters
CLI::CheckedTransformer DTypeNames();       // f32, f16, bf16, f64
CLI::CheckedTransformer ComputeNames();     // f32, f64

}  // namespace txl
