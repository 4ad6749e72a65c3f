#pragma once

// What the commands that read a model directory share.

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/checkpoint/model_directory.h"
#include "model/reference/network.h"
#include "model/text/vocabulary.h"

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

// How a word of --unknown (program/unknown_flag.h; empty: not given) has text
// encoded. Errors: InvalidArgument naming the flag, where it asks for an
// unknown symbol that the vocabulary lacks.
absl::StatusOr<EncodeOptions> EncodeOptionsOf(const Vocabulary& vocabulary,
                                              absl::string_view word);

// A file's text as ids, as a document. A byte order mark counts as text for
// vocabularies of bytes alone. Errors: NotFound; InvalidArgument naming the
// file: no UTF-8 (but for bytes), text that the vocabulary refuses; those of
// EncodeOptionsOf.
absl::StatusOr<std::vector<int32_t>> IdsOfFile(const std::string& path,
                                               const Vocabulary& vocabulary,
                                               absl::string_view unknown);

struct OpenModel {
  ModelDirectory directory;
  Weights weights;
};

// Sets the number of threads, opens the directory, loads its weights.
absl::StatusOr<OpenModel> OpenModelOf(const ModelFlags& flags);

}  // namespace txl
