#pragma once

// The scheduler's view of a device: ordered plans of rows in, tokens out. No
// tensor type appears here, so the scheduler builds and tests without LibTorch.
//
// The order of calls for a session that is fed two tokens and samples two:
//
//   runner->Clear(slot);                // or Import(slot, image)
//   runner->Configure(slot, sampling);  // before its first kDecode row
//
//   const StepId first = runner->Submit(
//       {{{slot, 0, RowKind::kPrefill, 4}, {slot, 1, RowKind::kDecode, 8}}});
//   const StepId second = runner->Submit(  // queued behind it, depth >= 2
//       {{{slot, 2, RowKind::kDecode, kLastSampled}}});
//   absl::StatusOr<StepResult> result = runner->Collect(first);
//   if (!result.ok()) return result.status();    // a device error
//   const int32_t token = result->rows[1].token_id;
//   result = runner->Collect(second);            // sampled behind `token`
//
//   std::future<absl::StatusOr<StateImage>> image = runner->Export(slot, 3);

#include <cstdint>
#include <future>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/memory/state_image.h"
#include "model/sampling/sampler.h"
#include "model/sampling/sampling_params.h"
#include "server/metrics/softmax_tail.h"

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

// Input: the token that this slot's previous kDecode row sampled, which the
// caller may not know yet (two steps in flight).
inline constexpr int32_t kLastSampled = -1;

// One token through all layers. Rows of one slot stand together in a plan, at
// consecutive ascending positions, kLastSampled at most at the first of them,
// kDecode at most at the last; or they are all kDerive. Where the runner
// verifies guesses, kDecode rows may follow a kDecode row: they feed what the
// caller guesses that the row before them samples.
struct StepRow {
  int32_t slot = 0;
  int64_t position = 0;  // absolute position of the input token
  RowKind kind = RowKind::kPrefill;
  int32_t token_id = 0;      // or kLastSampled
  int32_t score_target = 0;  // kScore only
  int32_t top_logprobs = 0;  // kDecode, kScore: alternatives reported
};

struct StepPlan {
  std::vector<StepRow> rows;
};

// What came of a row; rows without output have only a status.
struct RowResult {
  absl::Status status;  // Internal: this row's numbers are not finite
  // The row's guess, or one before it, is not what was sampled: it is as if the
  // row had not been in the plan.
  bool rejected = false;
  int32_t token_id = -1;  // kDecode: sampled; kScore: score_target
  float logprob = 0;      // of token_id, the model's own distribution
  std::vector<TokenLogprob> top_logprobs;
};

struct StepResult {
  std::vector<RowResult> rows;  // as in the plan
  double device_seconds = 0;
  // What the rows whose distribution was evaluated took.
  SoftmaxTails softmax_tails;
};

// Sampling state of a slot; replaced whole by Configure.
struct SlotSampling {
  SamplingParams params;
  // Last ids of the session before the next token to sample, oldest first,
  // ending with the token that the next kDecode row feeds.
  std::vector<int32_t> recent_ids;
  // Not sampled while position < min_position (stop and end tokens).
  std::vector<int32_t> banned_ids;
  int64_t min_position = 0;  // absolute position of the sampled token
};

using StepId = int64_t;

// Limits and identity, constant after construction.
struct RunnerInfo {
  int32_t slots = 0;
  int64_t spare_rows = 0;  // S: most rows of one slot beyond its commit
  int32_t max_rows = 0;    // most rows of one plan
  int32_t depth = 1;       // steps that may be in flight
  int64_t bytes_per_slot = 0;
  int64_t vocab_size = 0;
  int64_t mem_len = 0;
  int64_t window = 0;
  // An imported state wants a kDerive row for each of its stored rows.
  bool derives = false;
  // Steps of other slots run on while a state is imported; one with a row of
  // its slot waits for it.
  bool imports_aside = false;
  // kDecode rows may feed guesses (StepRow): a row's bits depend neither on how
  // its session's tokens are cut into steps nor on company.
  bool verifies_guesses = false;
  // Alternatives that a row can report.
  int32_t most_top_logprobs = std::numeric_limits<int32_t>::max();
  // A state depends on the last so many ids only, M + (N - 1)(W - 1) + 1.
  int64_t rebuild_ids = std::numeric_limits<int64_t>::max();
  StateIdentity identity;
  std::string device;  // "cpu", "cuda:0"
  std::string form;    // "projected", "absorbed"
  std::string weight_dtype;
};

// All calls from one thread (the scheduler's), executed in order. A slot's
// state is what the calls so far made of it; positions are the caller's.
//
// A failed step (device error) makes Collect return its status; slots are then
// as they were for positions before the failed plan's rows, and their tokens of
// that step are unknown: Configure a slot before it decodes again.
class StepRunner {
 public:
  virtual ~StepRunner() = default;

  virtual const RunnerInfo& info() const = 0;

  // Queues a step; never blocks. A row whose kLastSampled input is not known
  // because the sampling row failed is Internal itself. REQUIRES: fewer than
  // depth steps in flight, 1..max_rows rows, at most spare_rows of one slot;
  // slots that decode were configured.
  virtual StepId Submit(StepPlan plan) = 0;
  // Waits for a step; steps are collected in the order of submission.
  virtual absl::StatusOr<StepResult> Collect(StepId step) = 0;

  // Forgets the last sampled token, as Clear, Copy and Import do of the slot
  // that they write.
  virtual void Configure(int32_t slot, SlotSampling sampling) = 0;
  // Start state: position 0.
  virtual void Clear(int32_t slot) = 0;
  // Rows only: sampling state comes with Configure.
  virtual void Copy(int32_t from, int32_t to) = 0;
  // Rows before `position`.
  virtual std::future<absl::StatusOr<StateImage>> Export(int32_t slot,
                                                         int64_t position) = 0;
  // REQUIRES: there is an image.
  virtual std::future<absl::Status> Import(
      int32_t slot, std::shared_ptr<const StateImage> image) = 0;
};

}  // namespace txl
