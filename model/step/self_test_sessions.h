#pragma once

// What a step that samples is tried with before it serves (self_test.h): a few
// sessions that together do what serving does. Pure functions; no random number
// is drawn, so that every load of a model tries the same.

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "model/sampling/distribution.h"
#include "model/sampling/sampling_params.h"

namespace txl {

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

// In the order in which they begin. With few slots they are fewer (a copy wants
// two) and have less company.
std::vector<SelfTestSession> SelfTestSessions(const VocabularyBins& bins,
                                              int32_t slots);

// The sessions that run beside each other: [begin, end), (begin, end), ...
// Those of a group have different slots, and none stands on another of its
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
// The steps in which a group runs: each takes every session's next cut, as far
// as it has room.
std::vector<std::vector<SelfTestShare>> SelfTestSteps(
    absl::Span<const SelfTestSession> sessions, SelfTestGroup group,
    const SelfTestLimits& limits);

}  // namespace txl
