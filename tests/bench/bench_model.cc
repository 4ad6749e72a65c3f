#include "tests/bench/bench_model.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "model/checkpoint/model_directory.h"
#include "model/checkpoint/weights.h"
#include "server/engine/device_name.h"

namespace txl {
namespace {

constexpr double kStddev = 0.02;
constexpr uint64_t kSeed = 1;

absl::StatusOr<BenchModel> RandomModel(const BenchModelOptions& options,
                                       const LoadOptions& load) {
  std::ifstream file(options.path);
  std::stringstream text;
  if (!(text << file.rdbuf())) {
    return absl::NotFoundError(
        absl::StrCat(options.path, ": neither a directory nor a file"));
  }
  BenchModel model;
  model.name = std::filesystem::path(options.path).stem().string();
  model.fingerprint = absl::StrCat("random ", model.name);
  TXL_ASSIGN_OR_RETURN(model.config,
                       ParseModelConfig(text.str(), options.path));
  model.weights = RandomWeights(model.config, kStddev, kSeed, load);
  if (options.tail_share > 0) {
    TXL_RETURN_IF_ERROR(SetTailShare(options.tail_share, model.weights));
  }
  return model;
}

}  // namespace

absl::StatusOr<BenchModel> LoadBenchModel(const BenchModelOptions& options) {
  LoadOptions load;
  TXL_ASSIGN_OR_RETURN(load.device, ResolveDevice(options.device));
  if (!std::filesystem::is_directory(options.path)) {
    return RandomModel(options, load);
  }
  TXL_ASSIGN_OR_RETURN(const ModelDirectory directory,
                       OpenModelDirectory(options.path));
  BenchModel model;
  model.name = directory.name;
  model.fingerprint = directory.fingerprint;
  model.config = directory.config;
  TXL_ASSIGN_OR_RETURN(model.weights, LoadDirectoryWeights(directory, load));
  return model;
}

}  // namespace txl
