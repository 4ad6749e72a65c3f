#pragma once

// Makes steps for the device that a test program is linked with.

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "tests/model/cpu/native_driver.h"
#include "tests/model/cuda/step/cuda_step.h"
#include "tests/model/cuda/step/random_case.h"

namespace txl {

// `model`: a GoldenCase or a RandomCase. All slots are cleared.
template <typename Case>
std::unique_ptr<ModelStep> MakeCudaStep(const Case& model,
                                        CudaStepOptions options) {
  options.fingerprint = "the model";
  auto step = CreateCudaStep(model.config, model.weights, options);
  if (!step.ok()) throw std::runtime_error(step.status().ToString());
  for (int32_t slot = 0; slot < options.slots; ++slot) (*step)->Clear(slot);
  return *std::move(step);
}

// The oracle: the native step for CPUs, in float32.
inline std::unique_ptr<ModelStep> MakeOracle(const RandomCase& model,
                                             int64_t slots) {
  NativeStepOptions options;
  options.slots = slots;
  options.formats.form = AttentionForm::kAbsorbed;
  auto step = CreateNativeStep(model.config, model.weights, options);
  if (!step.ok()) throw std::runtime_error(step.status().ToString());
  for (int32_t slot = 0; slot < slots; ++slot) (*step)->Clear(slot);
  return *std::move(step);
}

// Log P of every id after every row, in order; clusters are evaluated for all
// rows at once.
inline std::vector<float> LogprobsOf(
    ModelStep& step, absl::Span<NextTokenDistribution* const> rows) {
  std::vector<ClusterOfRow> clusters;
  for (size_t row = 0; row < rows.size(); ++row) {
    for (size_t c = 0; c < rows[row]->bins().clusters(); ++c) {
      clusters.push_back({static_cast<int64_t>(row), c});
    }
  }
  step.EvaluateClusters(clusters);
  std::vector<float> out;
  for (NextTokenDistribution* row : rows) AppendLogprobs(*row, out);
  return out;
}

// Feeds tokens [begin, end) of `ids` at their positions in calls of at most
// `cut`; returns the log-probabilities of every row, [end - begin, V].
inline std::vector<float> FeedRows(ModelStep& step, int32_t slot,
                                   const std::vector<int32_t>& ids,
                                   int64_t begin, int64_t end, int64_t cut) {
  const std::vector<int32_t> ticks = TicksBefore(step.beats(), ids);
  std::vector<float> out;
  for (int64_t at = begin; at < end; at += cut) {
    const int64_t count = std::min(cut, end - at);
    std::vector<int32_t> outputs(count);
    std::iota(outputs.begin(), outputs.end(), 0);
    const StepSegment segment = {
        slot, at, absl::MakeSpan(ids).subspan(at, count), outputs,
        absl::MakeSpan(ticks).subspan(at, count)};
    const std::vector<float> rows = LogprobsOf(step, step.Run({&segment, 1}));
    out.insert(out.end(), rows.begin(), rows.end());
  }
  return out;
}

// The largest difference; 1e9 where a number is NaN or one is missing.
template <typename Number>
double WorstDifference(const std::vector<float>& found,
                       const std::vector<Number>& expected) {
  if (found.size() != expected.size()) return 1e9;
  double worst = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    const double difference = std::abs(double{found[i]} - expected[i]);
    worst = std::max(worst, std::isnan(difference) ? 1e9 : difference);
  }
  return worst;
}

}  // namespace txl
