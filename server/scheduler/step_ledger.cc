#include "server/scheduler/step_ledger.h"

#include <string>
#include <utility>

namespace txl {
namespace {

void BookRows(const RowCounts& rows, Snapshot& s) {
  s.rows_run += rows.total();
  s.rows_decode += rows.decode;
  s.rows_prefill += rows.prefill;
  s.rows_score += rows.score;
  s.rows_rebuild += rows.rebuild;
}

void BookTails(const SoftmaxTails& tails, Snapshot& s) {
  // The first step tells how many clusters there are.
  if (s.softmax_tails.size() < tails.size()) {
    s.softmax_tails.resize(tails.size());
  }
  for (size_t c = 0; c < tails.size(); ++c) {
    s.softmax_tails[c].computed += tails[c].computed;
    s.softmax_tails[c].skipped += tails[c].skipped;
  }
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

StepKind StepShape::kind() const {
  if (!streams) return StepKind::kPrompt;
  return prompts ? StepKind::kMixed : StepKind::kDecode;
}

void StepLedger::Step(const StepShape& shape, const StepResult* result,
                      absl::Time now) {
  metrics_->Update([&](Snapshot& s) {
    Distributions& d = s.distributions;
    ++s.steps;
    s.last_step = now;
    if (shape.decode) ++s.steps_with_decode;
    if (shape.streams && shape.prompts) ++s.steps_with_prompt_and_decode;
    d.step_batch_size.Observe(static_cast<double>(shape.turns));
    d.step_tokens.Observe(static_cast<double>(shape.tokens));
    if (result == nullptr) {
      ++s.steps_failed;
      return;
    }
    s.step_seconds += result->device_seconds;
    d.step_seconds[static_cast<size_t>(shape.kind())].Observe(
        result->device_seconds);
    BookTails(result->softmax_tails, s);
  });
}

void StepLedger::Guesses(const GuessCounts& counts) {
  if (counts.guessed == 0) return;
  metrics_->Update([&](Snapshot& s) {
    s.tokens_guessed += counts.guessed;
    s.guesses_accepted += counts.accepted;
    s.steps_saved += counts.steps_saved;
  });
}

void StepLedger::KeptToken(const RowCounts& rows, const TokenTime& token) {
  metrics_->Update([&](Snapshot& s) {
    BookRows(rows, s);
    s.tokens_fed += rows.total();
    ++s.tokens_sampled;
    ++s.tokens_delivered;
    s.tokens_prompt += token.prompt_tokens;
    if (!s.tenants.empty()) {
      ++s.tenants[token.tenant].tokens_delivered;
      s.tenants[token.tenant].tokens_prompt += token.prompt_tokens;
    }
    Distributions& d = s.distributions;
    (token.first ? d.first_token_seconds : d.inter_token_seconds)
        .Observe(token.seconds);
  });
}

void StepLedger::KeptInput(const RowCounts& rows, int64_t prompt_tokens,
                           int32_t tenant) {
  metrics_->Update([&](Snapshot& s) {
    BookRows(rows, s);
    s.tokens_fed += rows.total();
    s.tokens_prompt += prompt_tokens;
    if (!s.tenants.empty()) s.tenants[tenant].tokens_prompt += prompt_tokens;
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

void StepLedger::TurnEnded(const TurnEnd& end) {
  std::pair<std::string, std::string> kind(absl::StatusCodeToString(end.code),
                                           end.reason);
  metrics_->Update([&](Snapshot& s) {
    --s.turns_active;
    if (!s.tenants.empty()) --s.tenants[end.tenant].turns_active;
    ++s.turns_finished[kind.first];
    ++s.turns_ended[kind];
    Distributions& d = s.distributions;
    d.request_seconds.Observe(end.seconds);
    d.prompt_tokens.Observe(static_cast<double>(end.prompt_tokens));
    if (end.generated_tokens.has_value()) {
      d.generated_tokens.Observe(static_cast<double>(*end.generated_tokens));
    }
    if (end.seconds_per_token.has_value()) {
      d.time_per_output_token_seconds.Observe(*end.seconds_per_token);
    }
    if (end.cancelled_seconds.has_value()) {
      d.cancel_to_release_seconds.Observe(*end.cancelled_seconds);
    }
  });
}

}  // namespace txl
