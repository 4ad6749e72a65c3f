#pragma once

// What a step makes of the sessions of a self-test, and what another step makes
// of the same tokens.

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "model/memory/state_image.h"
#include "model/sampling/distribution.h"
#include "model/sampling/sampling_params.h"
#include "model/step/model_step.h"
#include "model/step/sampling_step.h"

namespace txl {

// What a step that samples is tried with before it serves (self_test.h): a few
// sessions that together do what serving does. Pure functions; no random number
// is drawn, so that every load of a model tries the same.

// Where a session's rows begin.
enum class SelfTestStart {
  kClear,   // a cleared slot, which others may have used before
  kFull,    // a memory that is full, of rows that an earlier session made
  kImport,  // where an earlier session ended, by its image
  kCopy,    // where an earlier session ended, by a copy of its slot
};

struct SelfTestSession {
  SelfTestStart start = SelfTestStart::kClear;
  int from = -1;  // the earlier session; its slot still holds it where kCopy
  int32_t slot = 0;
  std::vector<int32_t> prompt;   // >= 2 ids
  std::vector<int32_t> targets;  // what is scored, for each id but the last
  // Rows of the session's share of each step: of the prompt, then of the drawn
  // tokens. Their sum is rows().
  std::vector<int64_t> cuts;
  SamplingParams params;
  int64_t drawn = 0;  // tokens, >= 1; the last one is not fed

  int64_t rows() const {
    return static_cast<int64_t>(prompt.size()) + drawn - 1;
  }
};

// The largest rows() of a session.
inline constexpr int64_t kSelfTestRows = 16;

struct SelfTestLimits {
  int32_t slots = 1;     // >= 1
  int64_t max_rows = 1;  // of a step, >= 1
  int64_t spare = 8;     // rows of a slot in one step, >= 8
};

// The sum of rows() over all sessions.
int64_t SelfTestRows(absl::Span<const SelfTestSession> sessions);

// In the order in which they begin. With few slots they are fewer (a copy wants
// two) and have less company.
std::vector<SelfTestSession> SelfTestSessions(const VocabularyBins& bins,
                                              int32_t slots);

// The sessions that run beside each other: [begin, end), (begin, end), ...
// Sessions of a group have different slots, and none depends on another of its
// group.
struct SelfTestGroup {
  size_t begin = 0;
  size_t end = 0;
};
std::vector<SelfTestGroup> SelfTestGroups(
    absl::Span<const SelfTestSession> sessions);

// Rows of one session in one step.
struct SelfTestShare {
  size_t session = 0;
  int64_t first = 0;  // row of the session
  int64_t rows = 0;
};
// The steps in which a group runs. Each takes the next cut of every session
// until it is full.
std::vector<std::vector<SelfTestShare>> SelfTestSteps(
    absl::Span<const SelfTestSession> sessions, SelfTestGroup group,
    const SelfTestLimits& limits);

// One session on the step that is tried.
struct SelfTestTrace {
  // What it begins on; null: on a cleared slot.
  std::shared_ptr<const StateImage> start;
  int64_t position = 0;         // of its first row
  std::vector<int32_t> tokens;  // fed, those that were drawn too
  std::vector<RowResult> rows;  // one for each: scored, then drawn
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
  int64_t state_rows = 0;  // that the state has at the end
  StateImage end;          // the newest of them: the session's, and one before
};

// Feeds each trace's tokens to a slot of `reference`, all in one call, which
// reads its weights once. REQUIRES: as many traces as sessions, with tokens in
// the vocabulary; the reference is of the same model and has a slot for each
// session, with kSelfTestRows spare rows, and takes images of other steps.
// Errors: InvalidArgument where it cannot hold a start. Throws as the step
// does.
absl::StatusOr<std::vector<ReferenceTrace>> FollowSelfTest(
    ModelStep& reference, absl::Span<const SelfTestSession> sessions,
    absl::Span<const SelfTestTrace> traces);

}  // namespace txl
