#pragma once

// Flags whose values are names of the model's enumerations.

#include <c10/core/ScalarType.h>

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

#include "model/config/model_config.h"
#include "model/train/corpus.h"
#include "program/flag_checks.h"

namespace txl {

template <typename Enum>
using NamesOf = std::vector<std::pair<std::string, Enum>>;

const NamesOf<NormPlacement>& NormNames();           // pre, post
const NamesOf<CorpusVocabulary>& VocabularyNames();  // bytes, characters
const NamesOf<c10::ScalarType>& DTypeNames();        // f32, f16, bf16, f64
const NamesOf<c10::ScalarType>& ComputeNames();      // f32, f64

// A flag that takes one of the names, with the name of `value` as its default.
template <typename Enum>
CLI::Option* AddNamedFlag(CLI::App& app, const std::string& flag, Enum& value,
                          const NamesOf<Enum>& names, const std::string& help) {
  CLI::Option* option = app.add_option(flag, value, help);
  option->transform(OneOf(names));
  for (const auto& [name, known] : names) {
    if (known == value) option->default_str(name);
  }
  return option;
}

}  // namespace txl
