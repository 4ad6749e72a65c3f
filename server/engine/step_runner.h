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

#include <cstddef>
#include <cstdint>
#include <future>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/base/beat_positions.h"
#include "model/memory/state_image.h"
#include "model/sampling/sampling_params.h"
#include "model/step/step_row.h"
#include "server/metrics/metrics.h"

namespace txl {

struct StepPlan {
  std::vector<StepRow> rows;
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
  // Alternatives that a row can report, and ids that it can be asked about.
  int32_t most_top_logprobs = std::numeric_limits<int32_t>::max();
  // What the rows' ticks count (StepRow); nothing for most models.
  std::optional<BeatPositions> beats;
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

// Which sampled tokens the host never got. The next step is queued before the
// last one's tokens are read, so a token that was lost shows only when the
// steps behind it are collected.

// Thread-compatible.
class SampledTokens {
 public:
  explicit SampledTokens(int32_t slots)
      : sampled_in_(slots, kNoStep), lost_in_(slots, kNoStep) {}

  // Returns for each row of the plan the step that sampled the token which it
  // feeds. Called in the order of submission. REQUIRES: CheckPlan is OK.
  std::vector<StepId> Submitted(StepId step, const StepPlan& plan) {
    std::vector<StepId> token_of;
    for (const StepRow& row : plan.rows) {
      const bool last = row.token_id == kLastSampled;
      token_of.push_back(last ? sampled_in_[row.slot] : kNoStep);
    }
    for (const StepRow& row : plan.rows) {
      if (row.kind == RowKind::kDecode) sampled_in_[row.slot] = step;
    }
    return token_of;
  }

  // Which rows feed a token that is lost. REQUIRES: all steps before were
  // collected. `token_of`: what Submitted returned.
  std::vector<bool> Lost(const StepPlan& plan,
                         const std::vector<StepId>& token_of) const {
    std::vector<bool> lost;
    for (size_t i = 0; i < token_of.size(); ++i) {
      lost.push_back(token_of[i] != kNoStep &&
                     token_of[i] == lost_in_[plan.rows[i].slot]);
    }
    return lost;
  }

  void Collected(StepId step, const StepPlan& plan,
                 const absl::StatusOr<StepResult>& result) {
    for (size_t i = 0; i < plan.rows.size(); ++i) {
      if (plan.rows[i].kind != RowKind::kDecode) continue;
      if (result.ok() && result->rows[i].status.ok()) continue;
      lost_in_[plan.rows[i].slot] = step;
    }
  }

 private:
  static constexpr StepId kNoStep = -1;

  std::vector<StepId> sampled_in_, lost_in_;  // the last one of each slot
};

}  // namespace txl
