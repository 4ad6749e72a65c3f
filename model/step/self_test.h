#pragma once

// Whether a step computes what the model says: before a server serves, the step
// that it is to use runs a few sessions on the real weights and the real
// device, and what comes of them is compared with a plainer step in float32.
//
// What is compared: log-probabilities, relative to how far the model's own are
// apart; stored rows, relative to their layer's; and drawn tokens. Rounding
// gives errors of a known size, which depends on how numbers are stored
// (SelfTestBoundsOf); a mistake gives larger ones.

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "model/base/number_format.h"
#include "model/step/self_test_run.h"

namespace txl {

// A difference, and where it is, in words.
struct SelfTestWorst {
  double difference = 0;
  std::string where;
};

// How far a step is from the reference.
struct SelfTestDeviation {
  // Deviations of log-probabilities, divided by the spread of those of their
  // row: the root of the mean square, and the largest.
  double logprobs = 0;
  SelfTestWorst logprob;
  // Deviations of a session's rows in a layer, divided by the root of their
  // mean square and by SelfTestGrowth: the worst layer and the worst row.
  SelfTestWorst layer;
  SelfTestWorst row;
  // How far beside the part of [0, 1) that the reference gives a drawn token
  // the draw was, divided by the spread; of draws without a filter.
  SelfTestWorst draw;
};

// The most that a healthy step deviates.
struct SelfTestBounds {
  double logprobs = 0;
  double logprob = 0;
  double layer = 0;
  double row = 0;
  double draw = 0;
};

// How a step keeps its numbers.
struct SelfTestFormats {
  NumberFormat weights = NumberFormat::kF32;  // kInt4: the reference's, too
  NumberFormat memory = NumberFormat::kF32;
  NumberFormat derived = NumberFormat::kF32;
  // In which the rows of products are rounded; f32: they are not.
  NumberFormat products = NumberFormat::kF32;
};

// How much larger errors are behind so many layers. A number of a format is off
// by r / sqrt(3) of itself in the mean square, r being the format's largest
// relative error. A layer has four products, each of two rounded factors, whose
// errors are added to those that came: behind n layers they are sqrt(8 n / 3)
// r, where no layer makes them larger, beside the r of the rows themselves.
double SelfTestGrowth(int64_t layers);

// r of the coarsest format times that growth, and a margin over what models
// were found to do (docs/reliability.md).
SelfTestBounds SelfTestBoundsOf(const SelfTestFormats& formats, int64_t layers);

// "session 2, position 17": where a row of a trace is.
std::string SelfTestPlace(const SelfTestTrace& trace, size_t session,
                          size_t row);

// What must hold of the traces alone, whatever the model: every row has its
// numbers, ids are in the vocabulary, a greedy token is the first alternative,
// a filtered one what the sampler draws from the alternatives. Internal says
// what does not hold and where.
absl::Status CheckSelfTest(const VocabularyBins& bins,
                           absl::Span<const SelfTestSession> sessions,
                           absl::Span<const SelfTestTrace> traces);

// Internal where no number can be given: states of other rows, rows that moved
// and are not the same bits, numbers that are not finite. REQUIRES: traces that
// CheckSelfTest is content with.
absl::StatusOr<SelfTestDeviation> MeasureSelfTest(
    absl::Span<const SelfTestTrace> traces,
    absl::Span<const ReferenceTrace> expected);

// Internal says what is beyond its bound, and where.
absl::Status JudgeSelfTest(const SelfTestDeviation& deviation,
                           const SelfTestBounds& bounds);

// All of it: the sessions on `step`, their tokens on `reference`. What the
// errors say as above; throws as the steps do.
absl::StatusOr<SelfTestDeviation> TrySelfTest(SamplingStep& step,
                                              ModelStep& reference,
                                              const VocabularyBins& bins,
                                              const SelfTestLimits& limits);

}  // namespace txl
