#pragma once

// Feeds a native step as a server would: one session per slot.

#include <cstdint>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "absl/types/span.h"
#include "model/cpu/native_step.h"
#include "tests/model/torch/golden_case.h"

namespace txl {

inline std::unique_ptr<ModelStep> MakeNativeStep(const GoldenCase& golden,
                                                 NativeStepOptions options) {
  options.fingerprint = golden.name;
  auto step = CreateNativeStep(golden.config, golden.weights, options);
  if (!step.ok()) throw std::runtime_error(step.status().ToString());
  for (int32_t slot = 0; slot < options.slots; ++slot) (*step)->Clear(slot);
  return *std::move(step);
}

// Appends log P of every id, [V].
inline void AppendLogprobs(NextTokenDistribution& row,
                           std::vector<float>& out) {
  const auto append = [&](absl::Span<const float> words) {
    out.insert(out.end(), words.begin(), words.end());
  };
  append(row.Words());
  for (size_t c = 0; c < row.bins().clusters(); ++c) {
    append(row.ClusterWords(c));
  }
}

// Feeds tokens [begin, end) of `ids` at their positions in calls of at most
// `cut`; returns the log-probabilities of every row, [end - begin, V].
inline std::vector<float> Feed(ModelStep& step, int32_t slot,
                               const std::vector<int32_t>& ids, int64_t begin,
                               int64_t end, int64_t cut) {
  const std::vector<int32_t> ticks = TicksBefore(step.beats(), ids);
  std::vector<float> out;
  for (int64_t at = begin; at < end; at += cut) {
    const int64_t count = std::min(cut, end - at);
    std::vector<int32_t> outputs(count);
    std::iota(outputs.begin(), outputs.end(), 0);
    const StepSegment segment = {
        slot, at, absl::MakeSpan(ids).subspan(at, count), outputs,
        absl::MakeSpan(ticks).subspan(at, count)};
    for (NextTokenDistribution* row : step.Run({&segment, 1})) {
      AppendLogprobs(*row, out);
    }
  }
  return out;
}

}  // namespace txl
