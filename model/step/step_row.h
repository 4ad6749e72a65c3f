#pragma once

// A row of a step: what goes in and what comes out, the same for who plans
// steps, who runs them and the device.

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "model/sampling/sampler.h"

namespace txl {

enum class RowKind {
  kPrefill,  // feeds a token, no output
  kDecode,   // feeds a token and samples the next one
  kScore,    // feeds a token and reports log P(score_target | ...)
  kRebuild,  // as kPrefill; work that restores a state
  // Computes what derives from one more stored row of an imported state, oldest
  // first; has neither position nor token. Rows of other kinds wait for it.
  kDerive,
};

// Whether the row wants a distribution.
inline bool HasOutput(RowKind kind) {
  return kind == RowKind::kDecode || kind == RowKind::kScore;
}

// Input: the token that this slot's previous kDecode row sampled, which the
// caller may not know yet (two steps in flight).
inline constexpr int32_t kLastSampled = -1;

// One token through all layers. Rows of one slot stand together in a step, at
// consecutive ascending positions, kLastSampled at most at the first of them,
// kDecode at most at the last; or they are all kDerive. Where guesses are
// verified, kDecode rows may follow a kDecode row: they feed what the caller
// guesses that the row before them samples.
struct StepRow {
  int32_t slot = 0;
  int64_t position = 0;  // absolute position of the input token
  RowKind kind = RowKind::kPrefill;
  int32_t token_id = 0;      // or kLastSampled
  int32_t score_target = 0;  // kScore only
  // kDecode, kScore: most probable ids that are reported, and ids that are
  // reported whatever their probability; null: none.
  int32_t top_logprobs = 0;
  std::shared_ptr<const std::vector<int32_t>> logprob_ids = nullptr;

  // Of a model with beat positions: BeatCounter::ticks before the input token
  // (model/base/beat_positions.h). The ids before it say it, so that it is
  // known for kLastSampled too.
  int32_t ticks = 0;

  int64_t reported_ids() const {
    return logprob_ids == nullptr ? 0
                                  : static_cast<int64_t>(logprob_ids->size());
  }
};

// What came of a row. One without output, that failed or was rejected has
// nothing behind that.
struct RowResult {
  // This row's only: NotFinite, UnknownInput, NothingToSample
  // (model/sampling/sampler.h), or why its runner did not ask for its output.
  absl::Status status;
  // The row's guess, or one before it, is not what was sampled: it is as if the
  // row had not been in the step.
  bool rejected = false;
  int32_t token_id = -1;  // kDecode: sampled; kScore: score_target
  float logprob = 0;      // of token_id, the model's own distribution
  // The most probable ones, best first, then logprob_ids in their order.
  std::vector<TokenLogprob> top_logprobs;
};

// Internal: kLastSampled, or what stands behind it in its slot, but that row
// failed, or there was none.
inline absl::Status UnknownInput() {
  return absl::InternalError(
      "the token to feed is unknown: the row that sampled it failed");
}

// Internal: a log-probability that was looked at is NaN or +inf. `position`: of
// the row's input.
inline absl::Status NotFinite(int64_t position) {
  return absl::InternalError(absl::StrCat("the model's numbers at position ",
                                          position, " are not finite"));
}

}  // namespace txl
