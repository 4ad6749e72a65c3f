#include "model/tool/model_flags.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "model/text/text_file.h"
#include "model/tool/flag_values.h"
#include "model/train/corpus.h"
#include "program/unknown_flag.h"

namespace txl {

void AddModelFlags(CLI::App& app, ModelFlags& flags) {
  app.add_option("DIR", flags.directory, "model directory")
      ->required()
      ->check(CLI::ExistingDirectory);
  AddNamedFlag(app, "--dtype", flags.dtype, ComputeNames(), "arithmetic");
  app.add_option("--device", flags.device, "auto, cpu, cuda or cuda:N");
  app.add_option("--threads", flags.threads)->check(AtLeast(1));
}

absl::StatusOr<c10::Device> ParseDevice(const std::string& name) {
  if (name == "cpu") return c10::Device(c10::kCPU);
  if (name == "auto") {
    return c10::Device(at::hasCUDA() ? c10::kCUDA : c10::kCPU);
  }
  if (name != "cuda" && !name.starts_with("cuda:")) {
    return absl::InvalidArgumentError(
        absl::StrCat("--device: ", name, " is not auto, cpu, cuda or cuda:N"));
  }
  if (!at::hasCUDA()) {
    return absl::InvalidArgumentError("--device: no GPU is available");
  }
  return c10::Device(name);
}

absl::StatusOr<EncodeOptions> EncodeOptionsOf(const Vocabulary& vocabulary,
                                              absl::string_view word) {
  if (word == kUnknownSymbol && !vocabulary.has_unknown()) {
    return absl::InvalidArgumentError(
        "--unknown: the vocabulary has no unknown symbol");
  }
  EncodeOptions options;
  options.skip_unknown = word == kSkipUnknown;
  return options;
}

absl::StatusOr<std::vector<int32_t>> IdsOfFile(const std::string& path,
                                               const Vocabulary& vocabulary,
                                               absl::string_view unknown) {
  TXL_ASSIGN_OR_RETURN(const std::string file, ReadTextFile(path));
  const bool takes_bytes =
      vocabulary.kind() == "bytes" || vocabulary.kind() == "decimal_bytes";
  absl::string_view text = file;
  if (!takes_bytes) {
    TXL_ASSIGN_OR_RETURN(text, TextOfFile(file, path));
  }
  TXL_ASSIGN_OR_RETURN(const EncodeOptions options,
                       EncodeOptionsOf(vocabulary, unknown));
  return vocabulary.EncodeDocument(text, options);
}

absl::StatusOr<OpenModel> OpenModelOf(const ModelFlags& flags) {
  at::set_num_threads(flags.threads);
  TXL_ASSIGN_OR_RETURN(const c10::Device device, ParseDevice(flags.device));
  TXL_ASSIGN_OR_RETURN(ModelDirectory directory,
                       OpenModelDirectory(flags.directory));
  TXL_ASSIGN_OR_RETURN(Weights weights,
                       LoadDirectoryWeights(directory, {flags.dtype, device}));
  return OpenModel{std::move(directory), std::move(weights)};
}

}  // namespace txl
