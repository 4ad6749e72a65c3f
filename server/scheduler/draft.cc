#include "server/scheduler/draft.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "server/base/log.h"

namespace txl {
namespace {

// So many equal ids say that a memory is this session's.
int64_t SameIds(int64_t most_fed) {
  return std::min<int64_t>(most_fed / 2, 16);
}

int64_t Size(const DraftAsk& ask) {
  return ask.ids->size() + std::ssize(ask.guesses);
}

int32_t IdAt(const DraftAsk& ask, int64_t position) {
  const int64_t size = ask.ids->size();
  return position < size ? (*ask.ids)[position] : ask.guesses[position - size];
}

}  // namespace

Draft::Draft(StepRunner* runner)
    : runner_(runner),
      most_fed_(std::min(kMostFed, runner->info().spare_rows)),
      slots_(runner->info().slots) {}

std::vector<std::optional<DraftGuess>> Draft::Next(
    absl::Span<const DraftAsk> asks) {
  std::vector<std::optional<DraftGuess>> guesses(asks.size());
  StepPlan plan;
  std::vector<std::pair<size_t, size_t>> planned;  // ask and its last row
  for (size_t i = 0; works_ && i < asks.size(); ++i) {
    const int64_t room = runner_->info().max_rows - std::ssize(plan.rows);
    if (!PlanRows(asks[i], room, plan.rows)) continue;
    planned.emplace_back(i, plan.rows.size() - 1);
  }
  if (planned.empty()) return guesses;
  const std::vector<StepRow> rows = plan.rows;
  const absl::StatusOr<StepResult> result =
      runner_->Collect(runner_->Submit(std::move(plan)));
  if (!result.ok()) {
    works_ = false;
    Log(LogSeverity::kError, "speculation",
        {{"draft", "off: a step failed"},
         {"error", result.status().message()}});
    return guesses;
  }
  cost_.Note(std::ssize(planned), std::ssize(rows) - std::ssize(planned),
             result->device_seconds);
  size_t first = 0;
  for (const auto& [ask, last] : planned) {
    const RowResult& row = result->rows[last];
    if (row.status.ok()) {
      Remember(asks[ask].slot,
               absl::MakeConstSpan(rows).subspan(first, last + 1 - first));
      guesses[ask] = DraftGuess{row.token_id, std::exp(row.logprob)};
    } else {
      slots_[asks[ask].slot] = {};
    }
    first = last + 1;
  }
  return guesses;
}

std::optional<int64_t> Draft::Kept(const DraftAsk& ask) const {
  const Fed& fed = slots_[ask.slot];
  const int64_t first = fed.end - std::ssize(fed.last);
  const int64_t most = std::min(fed.end, Size(ask) - 1);
  int64_t kept = first;
  while (kept < most && fed.last[kept - first] == IdAt(ask, kept)) ++kept;
  const bool same = first == 0 || kept - first >= SameIds(most_fed_);
  // Rows further back would stand on some that have been overwritten.
  const bool whole = kept > fed.end - most_fed_;
  if (!same || !whole || Size(ask) - kept > most_fed_) return std::nullopt;
  return kept;
}

bool Draft::PlanRows(const DraftAsk& ask, int64_t room,
                     std::vector<StepRow>& rows) {
  const std::optional<int64_t> kept = Kept(ask);
  const int64_t size = Size(ask);
  int64_t position = kept.value_or(std::max<int64_t>(size - most_fed_, 0));
  if (size - position > room) return false;
  if (position == 0 || !kept.has_value()) {
    runner_->Clear(ask.slot);
    slots_[ask.slot] = {position, {}};
  }
  runner_->Configure(ask.slot, ask.sampling);
  for (; position < size; ++position) {
    StepRow& row = rows.emplace_back();
    row.slot = ask.slot;
    row.position = position;
    row.kind = position + 1 < size ? RowKind::kPrefill : RowKind::kDecode;
    row.token_id = IdAt(ask, position);
  }
  return true;
}

void Draft::Remember(int32_t slot, absl::Span<const StepRow> rows) {
  Fed& fed = slots_[slot];
  fed.last.resize(fed.last.size() - (fed.end - rows.front().position));
  for (const StepRow& row : rows) fed.last.push_back(row.token_id);
  fed.end = rows.back().position + 1;
  const int64_t most = 2 * (most_fed_ + SameIds(most_fed_));
  if (std::ssize(fed.last) > most) {
    fed.last.erase(fed.last.begin(), fed.last.end() - most / 2);
  }
}

}  // namespace txl
