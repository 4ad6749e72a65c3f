#pragma once

// Feeds a TorchStep as a server would: one session per slot.

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "absl/types/span.h"
#include "model/torch/torch_step.h"
#include "tests/model/torch/golden_case.h"

namespace txl {

inline std::unique_ptr<TorchStep> MakeStep(const GoldenCase& golden,
                                           int64_t slots, int64_t spare_rows) {
  TorchStepOptions options;
  options.slots = slots;
  options.spare_rows = spare_rows;
  options.fingerprint = golden.name;
  auto step = TorchStep::Create(golden.config, golden.weights, options);
  if (!step.ok()) throw std::runtime_error(step.status().ToString());
  return *std::move(step);
}

// Rows 0..n-1, owned.
inline std::vector<int32_t> AllRows(size_t n) {
  std::vector<int32_t> rows(n);
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

// Feeds tokens [begin, end) of `ids` at their positions, all at once; returns
// the log-probabilities of every row [end - begin, V].
inline at::Tensor FeedRange(TorchStep& step, int32_t slot,
                            const std::vector<int32_t>& ids, int64_t begin,
                            int64_t end) {
  const std::vector<int32_t> outputs =
      AllRows(static_cast<size_t>(end - begin));
  const std::vector<int32_t> ticks = TicksBefore(step.beats(), ids);
  const StepSegment segment = {
      slot, begin, absl::MakeSpan(ids).subspan(begin, end - begin), outputs,
      absl::MakeSpan(ticks).subspan(begin, end - begin)};
  return step.LogProbs({segment});
}

// Feeds tokens [begin, end) in calls of at most `cut`.
inline at::Tensor FeedInCuts(TorchStep& step, int32_t slot,
                             const std::vector<int32_t>& ids, int64_t begin,
                             int64_t end, int64_t cut) {
  std::vector<at::Tensor> rows;
  for (int64_t at = begin; at < end; at += cut) {
    rows.push_back(FeedRange(step, slot, ids, at, std::min(at + cut, end)));
  }
  return at::cat(rows);
}

inline double MaxAbsDifference(const at::Tensor& a, const at::Tensor& b) {
  return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

}  // namespace txl
