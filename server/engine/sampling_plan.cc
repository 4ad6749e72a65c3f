#include "server/engine/sampling_plan.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace txl {
namespace {

// Why a row that runs has no output although its kind wants one.
absl::Status CheckOutput(const StepRow& row, const RunnerInfo& info,
                         const SlotReadiness& slot) {
  if (!HasOutput(row.kind)) return absl::OkStatus();
  if (row.kind == RowKind::kDecode && !slot.sampling.ok()) {
    return slot.sampling;
  }
  const int64_t most = std::max<int64_t>(row.top_logprobs, row.reported_ids());
  if (most > info.most_top_logprobs) {
    return absl::InvalidArgumentError(
        absl::StrCat("top_logprobs ", most, ": the device reports ",
                     info.most_top_logprobs, " at most"));
  }
  return absl::OkStatus();
}

bool IsFirstOfSlot(const StepPlan& plan, size_t row) {
  return row == 0 || plan.rows[row - 1].slot != plan.rows[row].slot;
}

bool HasUnknownInput(const RowResult& row) {
  return !row.status.ok() && row.status == UnknownInput();
}

// The clusters computed and skipped by rows that had a distribution.
SoftmaxTails TailsOf(const SamplingPlan& sampling, const SampledRows& sampled) {
  int64_t wanted = 0;
  for (size_t i = 0; i < sampling.rows.size(); ++i) {
    const RowResult& row = sampled.rows[i];
    const bool ran = !row.rejected && !HasUnknownInput(row);
    if (ran && HasOutput(sampling.rows[i].kind)) ++wanted;
  }
  SoftmaxTails tails;
  for (const int64_t computed : sampled.evaluated) {
    tails.push_back({computed, std::max<int64_t>(wanted - computed, 0)});
  }
  return tails;
}

}  // namespace

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
    sampling.rows.push_back(row);
    sampling.plan_rows.push_back(i);
    if (sampling.statuses[i].ok()) continue;
    sampling.rows.back().kind = RowKind::kPrefill;
    sampling.rows.back().top_logprobs = 0;
    sampling.rows.back().logprob_ids = nullptr;
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
    unknown = unknown || HasUnknownInput(sampled.rows[i]);
    RowResult& out = result.rows[row];
    if (unknown) {
      out.status = UnknownInput();
    } else if (out.status.ok()) {
      out = std::move(sampled.rows[i]);
    }
  }
  return result;
}

namespace {

absl::Status RowError(size_t row, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("plan row ", row, ": ", what));
}

bool IsTokenId(int32_t id, const RunnerInfo& info) {
  return id >= 0 && id < info.vocab_size;
}

absl::Status CheckRow(const StepRow& row, size_t index,
                      const RunnerInfo& info) {
  if (absl::Status slot = CheckSlot(row.slot, info); !slot.ok()) {
    return RowError(index, slot.message());
  }
  if (row.kind == RowKind::kDerive) return absl::OkStatus();
  if (row.position < 0) {
    return RowError(index, absl::StrCat("position ", row.position));
  }
  if (row.token_id != kLastSampled && !IsTokenId(row.token_id, info)) {
    return RowError(index, absl::StrCat("token id ", row.token_id,
                                        " is not in the vocabulary"));
  }
  if (row.kind == RowKind::kScore && !IsTokenId(row.score_target, info)) {
    return RowError(index, absl::StrCat("score target ", row.score_target,
                                        " is not in the vocabulary"));
  }
  if (row.top_logprobs < 0 || row.top_logprobs > info.vocab_size) {
    return RowError(index, absl::StrCat("top_logprobs ", row.top_logprobs));
  }
  for (int64_t i = 0; i < row.reported_ids(); ++i) {
    if (IsTokenId((*row.logprob_ids)[i], info)) continue;
    return RowError(index, absl::StrCat("reported id ", (*row.logprob_ids)[i],
                                        " is not in the vocabulary"));
  }
  return absl::OkStatus();
}

// Whether a row may follow another one of its slot.
bool Follows(const StepRow& row, const StepRow& before) {
  if (before.slot != row.slot) return false;
  const bool derives = row.kind == RowKind::kDerive;
  if (derives != (before.kind == RowKind::kDerive)) return false;
  return derives || before.position + 1 == row.position;
}

// Checks a row behind another one of its slot: they have to be consecutive.
absl::Status CheckFollower(size_t index, const StepRow& row,
                           const StepRow& before, const RunnerInfo& info) {
  if (row.kind == RowKind::kDerive) return absl::OkStatus();
  if (row.token_id == kLastSampled) {
    return RowError(index,
                    "the last sampled token is input of a slot's first "
                    "row only");
  }
  const bool guess = info.verifies_guesses && row.kind == RowKind::kDecode;
  if (before.kind == RowKind::kDecode && !guess) {
    return RowError(
        index, absl::StrCat("slot ", row.slot, " decodes before its last row"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckSlot(int32_t slot, const RunnerInfo& info) {
  if (slot >= 0 && slot < info.slots) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("slot ", slot, " does not exist"));
}

absl::Status CheckExport(int32_t slot, int64_t position,
                         const RunnerInfo& info) {
  if (absl::Status status = CheckSlot(slot, info); !status.ok()) return status;
  if (position >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("position ", position, " of a state"));
}

absl::Status CheckPlan(const StepPlan& plan, const RunnerInfo& info) {
  if (plan.rows.empty() ||
      plan.rows.size() > static_cast<size_t>(info.max_rows)) {
    return absl::InvalidArgumentError(
        absl::StrCat("plan of ", plan.rows.size(), " rows; 1 to ",
                     info.max_rows, " are possible"));
  }
  std::vector<int64_t> rows_of_slot(info.slots, 0);
  for (size_t i = 0; i < plan.rows.size(); ++i) {
    const StepRow& row = plan.rows[i];
    absl::Status status = CheckRow(row, i, info);
    if (!status.ok()) return status;
    if (++rows_of_slot[row.slot] > info.spare_rows &&
        row.kind != RowKind::kDerive) {
      return RowError(i, absl::StrCat("more than ", info.spare_rows,
                                      " rows of slot ", row.slot));
    }
    if (rows_of_slot[row.slot] == 1) continue;
    if (!Follows(row, plan.rows[i - 1])) {
      return RowError(
          i, absl::StrCat("rows of slot ", row.slot, " are not consecutive"));
    }
    status = CheckFollower(i, row, plan.rows[i - 1], info);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace txl
