#include "server/engine/row_reporter.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "server/engine/row_errors.h"

namespace txl {
namespace {

// A model whose numbers ran away shows it in every part of the head.
bool IsFinite(NextTokenDistribution& distribution) {
  const auto below_infinity = [](double x) {
    return x < std::numeric_limits<double>::infinity();  // false for NaN
  };
  const absl::Span<const float> words = distribution.Words();
  return std::all_of(words.begin(), words.end(), below_infinity);
}

void Remember(int32_t token, SlotState& state) {
  state.last_sampled = token;
  std::vector<int32_t>& recent = state.sampling.recent_ids;
  recent.push_back(token);
  const size_t window =
      static_cast<size_t>(std::max(state.sampling.params.penalty_window, 0));
  if (recent.size() > window) {
    recent.erase(recent.begin(), recent.end() - window);
  }
}

}  // namespace

RowResult ReportRow(const StepRow& row, NextTokenDistribution& distribution,
                    const Sampler& sampler, SlotState& state) {
  RowResult result;
  if (row.kind == RowKind::kDecode) state.last_sampled.reset();
  if (!IsFinite(distribution)) {
    result.status = NotFinite(row.position);
    return result;
  }
  if (row.kind == RowKind::kScore) {
    result.token_id = row.score_target;
  } else {
    const SlotSampling& sampling = state.sampling;
    SampleContext context;
    context.recent_ids = sampling.recent_ids;
    context.position = row.position + 1;
    if (context.position < sampling.min_position) {
      context.banned_ids = sampling.banned_ids;
    }
    const absl::StatusOr<int32_t> token =
        sampler.Sample(distribution, sampling.params, context);
    if (!token.ok()) {
      result.status = token.status();
      return result;
    }
    result.token_id = *token;
    Remember(*token, state);
  }
  result.logprob = LogprobOf(distribution, result.token_id);
  if (!(result.logprob < std::numeric_limits<float>::infinity())) {
    result.status = NotFinite(row.position);
    return result;
  }
  if (row.top_logprobs > 0) {
    result.top_logprobs = TopLogprobs(distribution, row.top_logprobs);
  }
  return result;
}

SoftmaxTails CountTails(absl::Span<NextTokenDistribution* const> rows,
                        const VocabularyBins& bins) {
  SoftmaxTails tails(bins.clusters());
  for (const NextTokenDistribution* row : rows) {
    for (size_t c = 0; c < tails.size(); ++c) {
      ++(row->IsEvaluated(c) ? tails[c].computed : tails[c].skipped);
    }
  }
  return tails;
}

}  // namespace txl
