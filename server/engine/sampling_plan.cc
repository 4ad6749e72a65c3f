#include "server/engine/sampling_plan.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/sampling/sampler.h"

namespace txl {
namespace {

RowOutput OutputOf(const StepRow& row) {
  switch (row.kind) {
    case RowKind::kDecode:
      return RowOutput::kSample;
    case RowKind::kScore:
      return RowOutput::kScore;
    case RowKind::kPrefill:
    case RowKind::kRebuild:
    case RowKind::kDerive:
      break;
  }
  return RowOutput::kNone;
}

// Why a row that runs has no output although its kind wants one.
absl::Status CheckOutput(const StepRow& row, const RunnerInfo& info,
                         const SlotReadiness& slot) {
  if (OutputOf(row) == RowOutput::kNone) return absl::OkStatus();
  if (row.kind == RowKind::kDecode && !slot.sampling.ok()) {
    return slot.sampling;
  }
  if (row.top_logprobs > info.most_top_logprobs) {
    return absl::InvalidArgumentError(
        absl::StrCat("top_logprobs ", row.top_logprobs, ": the device reports ",
                     info.most_top_logprobs, " at most"));
  }
  return absl::OkStatus();
}

int32_t TokenOf(const StepRow& row) {
  if (row.kind == RowKind::kDerive) return kNoToken;
  return row.token_id == kLastSampled ? kLastSampledToken : row.token_id;
}

SamplingRow MakeRow(const StepRow& row, RowOutput output) {
  SamplingRow made;
  made.slot = row.slot;
  made.position = row.position;
  made.token = TokenOf(row);
  made.output = output;
  if (output == RowOutput::kNone) return made;
  made.target = row.score_target;
  made.top_logprobs = row.top_logprobs;
  return made;
}

bool IsFirstOfSlot(const StepPlan& plan, size_t row) {
  return row == 0 || plan.rows[row - 1].slot != plan.rows[row].slot;
}

absl::Status StatusOf(const SampledRow& sampled, int64_t position) {
  switch (sampled.status) {
    case SampledStatus::kOk:
    case SampledStatus::kRejected:
      break;
    case SampledStatus::kNotFinite:
      return NotFinite(position);
    case SampledStatus::kNothingLeft:
      return NothingToSample();
    case SampledStatus::kUnknownInput:
      return UnknownInput();
  }
  return absl::OkStatus();
}

void Report(const SamplingRow& row, SampledRow sampled, RowResult& result) {
  result.status = StatusOf(sampled, row.position);
  result.rejected = sampled.status == SampledStatus::kRejected;
  if (result.rejected) return;
  if (row.output == RowOutput::kNone || !result.status.ok()) return;
  result.token_id = sampled.token;
  result.logprob = sampled.logprob;
  result.top_logprobs = std::move(sampled.top_logprobs);
}

// The clusters computed and skipped by rows that had a distribution.
SoftmaxTails TailsOf(const SamplingPlan& sampling, const SampledRows& sampled) {
  int64_t wanted = 0;
  for (size_t i = 0; i < sampling.rows.size(); ++i) {
    const SampledStatus status = sampled.rows[i].status;
    const bool ran = status != SampledStatus::kUnknownInput &&
                     status != SampledStatus::kRejected;
    if (ran && sampling.rows[i].output != RowOutput::kNone) ++wanted;
  }
  SoftmaxTails tails;
  for (const int64_t computed : sampled.evaluated) {
    tails.push_back({computed, std::max<int64_t>(wanted - computed, 0)});
  }
  return tails;
}

}  // namespace

absl::Status UnknownInput() {
  return absl::InternalError(
      "the token to feed is unknown: the row that sampled it failed");
}

absl::Status NotFinite(int64_t position) {
  return absl::InternalError(absl::StrCat("the model's numbers at position ",
                                          position, " are not finite"));
}

SamplingPlan MakeSamplingPlan(const StepPlan& plan, const RunnerInfo& info,
                              absl::Span<const SlotReadiness> slots) {
  SamplingPlan sampling;
  sampling.statuses.resize(plan.rows.size());
  for (size_t i = 0; i < plan.rows.size(); ++i) {
    const StepRow& row = plan.rows[i];
    const SlotReadiness& slot = slots[row.slot];
    sampling.statuses[i] = slot.rows;
    if (!slot.rows.ok()) continue;
    if (row.kind == RowKind::kDerive && !info.derives) continue;
    sampling.statuses[i] = CheckOutput(row, info, slot);
    sampling.rows.push_back(MakeRow(
        row, sampling.statuses[i].ok() ? OutputOf(row) : RowOutput::kNone));
    sampling.plan_rows.push_back(i);
  }
  return sampling;
}

StepResult MakeStepResult(const StepPlan& plan, const SamplingPlan& sampling,
                          SampledRows sampled, const std::vector<bool>& lost) {
  StepResult result;
  result.device_seconds = sampled.device_seconds;
  result.softmax_tails = TailsOf(sampling, sampled);
  for (const absl::Status& status : sampling.statuses) {
    result.rows.emplace_back().status = status;
  }
  bool unknown = false;  // the rest of this slot's rows
  for (size_t i = 0; i < sampling.rows.size(); ++i) {
    const size_t row = sampling.plan_rows[i];
    if (IsFirstOfSlot(plan, row)) unknown = lost[row];
    unknown = unknown || sampled.rows[i].status == SampledStatus::kUnknownInput;
    RowResult& out = result.rows[row];
    if (unknown) {
      out.status = UnknownInput();
    } else if (out.status.ok()) {
      Report(sampling.rows[i], std::move(sampled.rows[i]), out);
    }
  }
  return result;
}

}  // namespace txl
