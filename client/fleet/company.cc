#include "client/fleet/company.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace txl::fleet {

double Company::RowsOfStep() const {
  return prompts_.empty() ? 0 : costs_->prompt_rows_per_step;
}

double Company::StepSeconds() const {
  const double rows = RowsOfStep() * costs_->prompt_row_seconds;
  if (streams_.empty()) return rows;
  return rows + costs_->steps.Seconds(static_cast<double>(streams_.size()));
}

void Company::Advance(double now) {
  const double passed = std::max(0.0, now - now_);
  now_ = std::max(now_, now);
  const double step = StepSeconds();
  if (step == 0) return;
  busy_seconds_ += passed;
  steps_ += passed / step;
  if (prompts_.empty()) return;
  const double rows = passed / step * RowsOfStep();
  auto first = prompts_.extract(prompts_.begin());
  first.key() = std::max(0.0, first.key() - rows);
  prompts_.insert(prompts_.begin(), std::move(first));
}

double Company::BusySeconds(double now) const {
  return busy_seconds_ + (StepSeconds() == 0 ? 0 : now - now_);
}

void Company::AddPrompt(int32_t turn, double rows, double now) {
  Advance(now);
  prompts_.emplace(rows, turn);
}

void Company::AddStream(int32_t turn, double tokens, double now) {
  Advance(now);
  streams_.push({steps_ + tokens, added_++, turn});
}

void Company::Clear(double now) {
  Advance(now);
  streams_ = {};
  prompts_.clear();
}

double Company::NextEnd() const {
  const double step = StepSeconds();
  double end = kNever;
  if (!streams_.empty()) {
    end = now_ + std::max(0.0, streams_.top().end - steps_) * step;
  }
  if (!prompts_.empty()) {
    end = std::min(end, now_ + prompts_.begin()->first / RowsOfStep() * step);
  }
  return end;
}

int32_t Company::PopNext() {
  const double step = StepSeconds();
  const double end = NextEnd();
  const bool prompt =
      !prompts_.empty() &&
      now_ + prompts_.begin()->first / RowsOfStep() * step <= end;
  Advance(end);
  if (prompt) {
    const int32_t turn = prompts_.begin()->second;
    prompts_.erase(prompts_.begin());
    return turn;
  }
  const int32_t turn = streams_.top().turn;
  streams_.pop();
  return turn;
}

}  // namespace txl::fleet
