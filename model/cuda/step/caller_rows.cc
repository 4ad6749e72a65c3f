#include "model/cuda/step/caller_rows.h"

#include <algorithm>
#include <cmath>

namespace txl::cuda {
namespace {

static_assert(SamplingStep::kMostTopLogprobs <= kMaxTopLogprobs &&
                  SamplingStep::kMostTopLogprobs <= kMaxNamedIds,
              "a kernel's row has no room for more");

absl::Status StatusOf(SampleStatus status, int64_t position) {
  switch (status) {
    case SampleStatus::kOk:
      return absl::OkStatus();
    case SampleStatus::kNothingLeft:
      return NothingToSample();
    default:
      return NotFinite(position);
  }
}

// Reads what came of the wanted row `wanted`.
void ReadOutput(const StepRow& row, int64_t wanted, const ResultArrays& results,
                RowResult& sampled) {
  sampled.status = StatusOf(results.statuses()[wanted], row.position);
  if (!sampled.status.ok()) return;
  sampled.token_id = results.tokens()[wanted];
  sampled.logprob = results.logprobs()[wanted];
  const int64_t first = wanted * kMaxReported;
  const int64_t end = first + row.top_logprobs + row.reported_ids();
  for (int64_t i = first; i < end; ++i) {
    if (results.top_ids()[i] < 0) break;
    sampled.top_logprobs.push_back(
        {results.top_ids()[i], results.top_logprobs()[i]});
    // A NaN can only be a named word: it is never among the best.
    if (!(results.top_logprobs()[i] < HUGE_VALF)) {
      sampled = {};
      sampled.status = NotFinite(row.position);
      return;
    }
  }
}

// Writes the ids that a wanted row names.
void WriteNamed(const StepRow& row, int64_t wanted, int64_t max_rows,
                int32_t* named) {
  for (int64_t i = 0; i < kMaxNamedIds; ++i) {
    named[i * max_rows + wanted] =
        i < row.reported_ids() ? (*row.logprob_ids)[i] : -1;
  }
}

}  // namespace

CallerRows CountRows(absl::Span<const StepRow> rows) {
  CallerRows counted;
  counted.rows.assign(rows.begin(), rows.end());
  for (const StepRow& row : rows) {
    if (!HasOutput(row.kind)) continue;
    ++counted.wanted;
    counted.has_top |= row.top_logprobs > 0 || row.reported_ids() > 0;
  }
  return counted;
}

void WriteRows(const CallerRows& rows, int64_t max_rows, int buffer,
               StepInput& input) {
  int64_t* const positions = input.positions(buffer);
  const auto column = [&](InputColumn name, int32_t other) {
    int32_t* const numbers = input.column(name, buffer);
    std::fill_n(numbers, max_rows, other);
    return numbers;
  };
  std::fill_n(positions, max_rows, 0);
  int32_t* const slots = column(InputColumn::kSlot, -1);
  int32_t* const tokens = column(InputColumn::kToken, 0);
  int32_t* const ticks = column(InputColumn::kTicks, 0);
  int32_t* const follows = column(InputColumn::kFollowsSampled, 0);
  int32_t* const wanted = column(InputColumn::kWanted, -1);
  int32_t* const targets = column(InputColumn::kTarget, -1);
  int32_t* const top_counts = column(InputColumn::kTopCount, 0);
  int64_t outputs = 0;
  for (size_t r = 0; r < rows.rows.size(); ++r) {
    const StepRow& row = rows.rows[r];
    const bool is_first = r == 0 || rows.rows[r - 1].slot != row.slot;
    const bool is_sampled = row.token_id == kLastSampled;
    slots[r] = row.slot;
    positions[r] = row.position;
    tokens[r] = row.token_id;
    ticks[r] = row.ticks;
    follows[r] = is_first ? (is_sampled ? 1 : 0) : follows[r - 1];
    if (!HasOutput(row.kind)) continue;
    wanted[outputs] = static_cast<int32_t>(r);
    if (row.kind == RowKind::kScore) targets[outputs] = row.score_target;
    if (rows.has_top) {
      WriteNamed(row, outputs, max_rows,
                 input.column(InputColumn::kNamed, buffer));
    }
    top_counts[outputs++] = row.top_logprobs;
  }
}

std::vector<RowResult> ReadRows(const CallerRows& rows,
                                const ResultArrays& results) {
  std::vector<RowResult> sampled(rows.rows.size());
  int64_t wanted = 0;
  for (size_t r = 0; r < sampled.size(); ++r) {
    const StepRow& row = rows.rows[r];
    if (results.unknown()[r] != 0) {
      sampled[r].status = UnknownInput();
    } else if (HasOutput(row.kind)) {
      ReadOutput(row, wanted, results, sampled[r]);
    }
    wanted += HasOutput(row.kind) ? 1 : 0;
  }
  return sampled;
}

std::vector<int64_t> SumListEnds(const ResultArrays& results, int64_t passes,
                                 size_t clusters) {
  std::vector<int64_t> sums(clusters);
  const int32_t* end = results.list_ends();
  for (int64_t pass = 0; pass < passes; ++pass) {
    for (int64_t& sum : sums) sum += *end++;
  }
  return sums;
}

}  // namespace txl::cuda
