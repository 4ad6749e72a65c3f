#pragma once

// From a distribution to a row's result: sampling, scores, alternatives.

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "model/sampling/sampler.h"
#include "server/engine/step_runner.h"
#include "server/metrics/softmax_tail.h"

namespace txl {

// What a runner keeps per slot besides rows.
struct SlotState {
  SlotSampling sampling;
  // Of the last kDecode row; empty when it failed or there was none.
  std::optional<int32_t> last_sampled;
};

// The result of a kDecode or kScore row with the distribution that follows it.
// A sampled token enters the slot's state; a row that fails leaves
// `last_sampled` empty. Internal when one of the log-probabilities that were
// looked at is NaN or +inf.
RowResult ReportRow(const StepRow& row, NextTokenDistribution& distribution,
                    const Sampler& sampler, SlotState& state);

// What has been evaluated of the rows' distributions over `bins` so far.
SoftmaxTails CountTails(absl::Span<NextTokenDistribution* const> rows,
                        const VocabularyBins& bins);

}  // namespace txl
