#include "server/scheduler/step_ledger.h"

namespace txl {
namespace {

void BookRows(const RowCounts& rows, Snapshot& s) {
  s.rows_run += rows.total();
  s.rows_decode += rows.decode;
  s.rows_prefill += rows.prefill;
  s.rows_score += rows.score;
  s.rows_rebuild += rows.rebuild;
}

}  // namespace

void RowCounts::Add(RowKind kind) {
  switch (kind) {
    case RowKind::kDecode:
      ++decode;
      break;
    case RowKind::kPrefill:
      ++prefill;
      break;
    case RowKind::kScore:
      ++score;
      break;
    case RowKind::kRebuild:
      ++rebuild;
      break;
    case RowKind::kDerive:  // no token: not through the layers
      break;
  }
}

void StepLedger::Step(const StepShape& shape, double device_seconds) {
  metrics_->Update([&](Snapshot& s) {
    ++s.steps;
    s.step_seconds += device_seconds;
    if (shape.decode) ++s.steps_with_decode;
    if (shape.stream_and_prompt) ++s.steps_with_prompt_and_decode;
  });
}

void StepLedger::Kept(const RowCounts& rows, bool token_delivered) {
  metrics_->Update([&](Snapshot& s) {
    BookRows(rows, s);
    s.tokens_fed += rows.total();
    if (token_delivered) {
      ++s.tokens_sampled;
      ++s.tokens_delivered;
    }
  });
}

void StepLedger::Discarded(const RowCounts& rows, int64_t tokens_sampled) {
  if (rows.total() == 0 && tokens_sampled == 0) return;
  metrics_->Update([&](Snapshot& s) {
    BookRows(rows, s);
    s.rows_discarded += rows.total();
    s.tokens_sampled += tokens_sampled;
    s.tokens_discarded += tokens_sampled;
  });
}

void StepLedger::TurnFinished(const std::string& code_name) {
  metrics_->Update([&](Snapshot& s) {
    --s.turns_active;
    ++s.turns_finished[code_name];
  });
}

}  // namespace txl
