#pragma once

// What the commands that read a model directory share.

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/checkpoint/model_directory.h"
#include "model/config/model_config.h"
#include "model/cpu/native_weights.h"
#include "model/cpu/vector_target.h"
#include "model/reference/network.h"
#include "model/text/vocabulary.h"
#include "model/train/streams.h"
#include "program/flag_checks.h"

namespace txl {

struct ModelFlags {
  std::string directory;
  c10::ScalarType dtype = c10::kFloat;  // of the arithmetic
  std::string device = "cpu";
  int threads = 2;
};

// DIR --dtype --device --threads.
void AddModelFlags(CLI::App& app, ModelFlags& flags);

// "auto" (a GPU when there is one), "cpu", "cuda", "cuda:1".
// Errors: InvalidArgument naming the flag.
absl::StatusOr<c10::Device> ParseDevice(const std::string& name);

// --unknown with the words of program/command_line.h, or a symbol that stands
// for pieces of text without one.
void AddUnknownSymbolFlag(CLI::App& app, std::string* word);

// How a word of --unknown (empty: not given) has text encoded. Errors:
// InvalidArgument naming the flag, where it asks for a symbol that the
// vocabulary lacks.
absl::StatusOr<EncodeOptions> EncodeOptionsOf(const Vocabulary& vocabulary,
                                              absl::string_view word);

// What a user gave as text: any bytes for vocabularies of bytes, else
// TextOfFile.
absl::StatusOr<absl::string_view> TextFor(const Vocabulary& vocabulary,
                                          absl::string_view bytes,
                                          absl::string_view name);

// A file's text as ids, as a document. A byte order mark counts as text for
// vocabularies of bytes alone. Errors: NotFound; InvalidArgument naming the
// file: no UTF-8 (but for bytes), text that the vocabulary refuses, with how
// often each piece occurs that has no symbol; those of EncodeOptionsOf.
absl::StatusOr<std::vector<int32_t>> IdsOfFile(const std::string& path,
                                               const Vocabulary& vocabulary,
                                               absl::string_view unknown);

// Paths of the files that a model, or a run of training, has in `folder`, there
// or not; without the table of n-grams.
std::vector<std::string> ModelFiles(const std::string& folder);
// InvalidArgument naming --out and the file, where one that is read is also
// written, under whichever name.
absl::Status CheckReplacesNone(const std::vector<std::string>& written,
                               const std::vector<std::string>& read);

struct OpenModel {
  ModelDirectory directory;
  Weights weights;
};

// Sets the number of threads, opens the directory, loads its weights.
absl::StatusOr<OpenModel> OpenModelOf(const ModelFlags& flags);

// Flags whose values are names of the model's enumerations.

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

// The flags that choose the native step's number formats and form.

struct FormatFlags {
  std::string form = "auto";
  std::string weights = "f32";
  std::string memory = "f32";
  std::string derived = "f32";
  std::string products = "float";
  std::string vector_target = kAutoVectorTarget;
};

// --form, --weights, --memory, --derived, --products, --vector-target; other
// names are errors of usage.
void AddFormatFlags(CLI::App& app, FormatFlags& flags);

// REQUIRES: names that AddFormatFlags lets pass.
NativeFormats FormatsOf(const FormatFlags& flags);

// InvalidArgument names the first flag that has not its default; `needed` says
// what other values need.
absl::Status RequireDefaults(const FormatFlags& flags,
                             absl::string_view needed);

}  // namespace txl
