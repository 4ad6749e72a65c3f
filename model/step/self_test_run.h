#pragma once

// What a step makes of the sessions of a self-test, and what another step makes
// of the same tokens.

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "model/memory/state_image.h"
#include "model/step/model_step.h"
#include "model/step/sampling_step.h"
#include "model/step/self_test_sessions.h"

namespace txl {

// One session on the step that is tried.
struct SelfTestTrace {
  // What it begins on; null: on a cleared slot.
  std::shared_ptr<const StateImage> start;
  int64_t position = 0;          // of its first row
  std::vector<int32_t> tokens;   // fed, those that were drawn too
  std::vector<SampledRow> rows;  // one for each: scored, then drawn
  std::shared_ptr<const StateImage> end;
};

// Alternatives that every row reports.
inline constexpr int32_t kSelfTestAlternatives = 20;

// Runs the sessions, two steps in flight. Slots are not cleared at the end.
// Errors: Internal where an import is refused. Throws as the step does.
absl::StatusOr<std::vector<SelfTestTrace>> RunSelfTest(
    SamplingStep& step, absl::Span<const SelfTestSession> sessions,
    const SelfTestLimits& limits);

// One session on the step that it is compared with.
struct ReferenceRow {
  // log P of the row's token, and of its alternatives in their order.
  float logprob = 0;
  std::vector<float> alternatives;
  // The largest log-probabilities, best first, as many as the alternatives.
  std::vector<float> best;
  // Standard deviation of the log-probabilities of the first bin's words.
  double spread = 0;
  // Where the row drew from all words: how far its draw is beside the part of
  // [0, 1) that this distribution gives the token. A token that rounding made
  // another one is close.
  double draw_distance = 0;
};
struct ReferenceTrace {
  std::vector<ReferenceRow> rows;
  StateImage end;
};

// Feeds each trace's tokens to a slot of `reference`, all in one call.
// REQUIRES: as many traces as sessions, with tokens in the vocabulary; the
// reference is of the same model and has kSelfTestRows spare rows. Errors:
// InvalidArgument where it cannot hold a start. Throws as the step does.
absl::StatusOr<std::vector<ReferenceTrace>> FollowSelfTest(
    ModelStep& reference, absl::Span<const SelfTestSession> sessions,
    absl::Span<const SelfTestTrace> traces);

}  // namespace txl
