#include "server/scheduler/step_ledger.h"

#include <algorithm>
#include <cstddef>
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

namespace {

constexpr double kKept = 0.99;  // of what older steps say, a step
// Before this many the steps are not expected to take anything.
constexpr int64_t kFewSteps = 16;
// The assumptions, as steps of no time that are never forgotten.
constexpr std::array<std::pair<std::array<double, 3>, double>, 2> kAssumed = {
    {{{1, -1, 0}, 0.01}, {{0, 0.5, -1}, 1}}};

}  // namespace

void StepCost::Note(int64_t streams, int64_t guesses, double seconds) {
  if (noted_ >= kFewSteps) {
    seconds = std::min(seconds, kMost * Seconds(streams, guesses));
  }
  const Vector step = {1, static_cast<double>(streams),
                       static_cast<double>(guesses)};
  for (size_t i = 0; i < step.size(); ++i) {
    for (size_t j = 0; j < step.size(); ++j) {
      squares_[i][j] = kKept * squares_[i][j] + step[i] * step[j];
    }
    sums_[i] = kKept * sums_[i] + step[i] * seconds;
  }
  ++noted_;
  Solve();
}

double StepCost::Seconds(int64_t streams, int64_t guesses) const {
  return cost_[0] + cost_[1] * static_cast<double>(streams) +
         cost_[2] * static_cast<double>(guesses);
}

// Gaussian elimination; the matrix is positive definite.
void StepCost::Solve() {
  std::array<Vector, 3> a = squares_;
  Vector b = sums_;
  for (const auto& [row, weight] : kAssumed) {
    for (size_t i = 0; i < row.size(); ++i) {
      for (size_t j = 0; j < row.size(); ++j) {
        a[i][j] += weight * row[i] * row[j];
      }
    }
  }
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t k = i + 1; k < a.size(); ++k) {
      const double factor = a[k][i] / a[i][i];
      for (size_t j = i; j < a.size(); ++j) a[k][j] -= factor * a[i][j];
      b[k] -= factor * b[i];
    }
  }
  for (size_t i = a.size(); i-- > 0;) {
    for (size_t j = i + 1; j < a.size(); ++j) b[i] -= a[i][j] * b[j];
    b[i] /= a[i][i];
  }
  for (size_t i = 0; i < b.size(); ++i) cost_[i] = std::max(b[i], 0.0);
}

namespace {

// Weight of the last turn in the mean of what turns generate.
constexpr double kNewest = 1.0 / 16;

}  // namespace

void ServiceRate::NoteStep(int64_t tokens, bool waiting, absl::Duration now) {
  if (since_.has_value()) {
    busy_ += std::max(now - *since_, absl::ZeroDuration());
    tokens_ += tokens;
  }
  since_.reset();
  if (waiting) since_ = now;
  if (busy_ < kWindow) return;
  const double rate =
      static_cast<double>(tokens_) / absl::ToDoubleSeconds(busy_);
  rate_ = std::max(rate, (rate_.value_or(rate) + rate) / 2);
  busy_ = absl::ZeroDuration();
  tokens_ = 0;
}

void ServiceRate::NoteTurn(int64_t generated) {
  generated_ += kNewest * (static_cast<double>(generated) - generated_);
}

double ServiceRate::Expected(int64_t max_tokens) const {
  return std::min(static_cast<double>(max_tokens), generated_);
}

bool IsUnreachable(double tokens, double tokens_per_second,
                   absl::Duration left) {
  return tokens >
         kDeadlineSafety * tokens_per_second * absl::ToDoubleSeconds(left);
}

}  // namespace txl
