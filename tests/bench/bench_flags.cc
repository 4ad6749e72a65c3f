#include "tests/bench/bench_flags.h"

#include <algorithm>
#include <fstream>
#include <thread>

#include "absl/strings/str_cat.h"

namespace txl {

void AddRunnerFlags(CLI::App& app, StepRunnerOptions& options) {
  options.threads =
      static_cast<int32_t>(std::max(1u, std::thread::hardware_concurrency()));
  app.add_option("--device", options.device, "cpu, cuda, cuda:N, auto")
      ->capture_default_str();
  app.add_option("--step", options.step, "auto, native, torch")
      ->capture_default_str();
  app.add_option("--threads", options.threads, "of step and measurements")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--form", options.form, "auto, projected, absorbed")
      ->capture_default_str();
  app.add_option("--weights", options.weights, "f32, bf16, f16, int8, int4")
      ->capture_default_str();
  app.add_option("--memory", options.memory, "f32, bf16, f16, int8")
      ->capture_default_str();
  app.add_option("--derived", options.derived, "f32, bf16, f16, int8")
      ->capture_default_str();
  app.add_option("--products", options.products, "float, int8")
      ->capture_default_str();
  app.add_option("--vector-target", options.vector_target,
                 "auto, AMX, AVX3_DL, AVX3, AVX2, ...")
      ->capture_default_str();
  app.add_option("--overlapped-rows", options.overlapped_rows,
                 "native CUDA step: kernels overlap in steps of at most so "
                 "many rows")
      ->capture_default_str();
}

nlohmann::ordered_json RunnerFlagsJson(const StepRunnerOptions& options) {
  return {{"device", options.device},
          {"step", options.step},
          {"threads", options.threads},
          {"form", options.form},
          {"weights", options.weights},
          {"memory", options.memory},
          {"derived", options.derived},
          {"products", options.products},
          {"vector_target", options.vector_target},
          {"overlapped_rows", options.overlapped_rows}};
}

absl::Status WriteJson(const nlohmann::ordered_json& document,
                       const std::string& path) {
  std::ofstream file(path);
  file << document.dump(1) << "\n";
  if (file.flush()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(path, ": cannot be written"));
}

}  // namespace txl
