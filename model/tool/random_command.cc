// txl-model random: random weights of a shape, for benchmarks.

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "model/checkpoint/weights.h"
#include "model/tool/command.h"
#include "model/tool/model_flags.h"
#include "model/train/model_files.h"
#include "model/train/run_folder.h"
#include "model/train/streams.h"

namespace txl {
namespace {

struct RandomFlags {
  std::string spec, directory;
  uint64_t seed = 1;
  double stddev = 0.02;
  std::optional<double> tail_share;
  c10::ScalarType dtype = c10::kFloat;
};

absl::Status RunRandom(const RandomFlags& flags) {
  const FolderContent content = ContentOf(flags.directory);
  if (content == FolderContent::kModel ||
      content == FolderContent::kCheckpoint) {
    return absl::AlreadyExistsError(
        absl::StrCat(flags.directory, ": holds files of a model already"));
  }
  TXL_ASSIGN_OR_RETURN(const std::string spec, ReadTextFile(flags.spec));
  TXL_ASSIGN_OR_RETURN(const ModelConfig config,
                       ParseModelConfig(spec, flags.spec));
  std::error_code error;
  std::filesystem::create_directories(flags.directory, error);
  if (error) {
    return absl::PermissionDeniedError(
        absl::StrCat(flags.directory, ": ", error.message()));
  }
  Weights weights = RandomWeights(config, flags.stddev, flags.seed, {});
  if (flags.tail_share) {
    const absl::Status set = SetTailShare(*flags.tail_share, weights);
    if (!set.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--tail-share: ", set.message()));
    }
  }
  TXL_RETURN_IF_ERROR(WriteTextFile(flags.directory + "/config.json",
                                    ModelConfigToJson(config)));
  return SaveWeights(weights, config, flags.directory + "/model.safetensors",
                     flags.dtype);
}

}  // namespace

Command AddRandomCommand(CLI::App& app) {
  auto flags = std::make_shared<RandomFlags>();
  CLI::App* sub = app.add_subcommand(
      "random", "Write a model directory with random weights");
  sub->add_option("--spec", flags->spec, "config.json with the shape")
      ->required()
      ->check(CLI::ExistingFile);
  sub->add_option("DIR", flags->directory,
                  "model directory to write; must not hold a model")
      ->required();
  sub->add_option("--seed", flags->seed);
  sub->add_option("--stddev", flags->stddev,
                  "standard deviation of the weights");
  sub->add_option("--tail-share", flags->tail_share,
                  "share of tokens for which the softmax needs a tail, in (0, "
                  "1) [not set]");
  AddNamedFlag(*sub, "--dtype", flags->dtype, DTypeNames(),
               "format of the written weights");
  return {sub, [flags] { return RunRandom(*flags); }};
}

}  // namespace txl
