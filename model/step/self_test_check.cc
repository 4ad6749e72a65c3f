#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "model/sampling/sampler.h"
#include "model/step/self_test.h"

namespace txl {
namespace {

// What two roundings of one number are apart.
constexpr float kSameLogprob = 1e-4f;

bool IsLogprob(float x) { return x <= 1e-3f; }  // false for NaN

// What the sampler draws when it sees the alternatives alone.
absl::StatusOr<int32_t> DrawnFromAlternatives(const Sampler& sampler,
                                              const SelfTestSession& session,
                                              const SampledRow& row,
                                              int64_t position) {
  std::vector<float> logprobs(sampler.bins().ends.back(),
                              -std::numeric_limits<float>::infinity());
  for (const TokenLogprob& other : row.top_logprobs) {
    logprobs[other.token_id] = other.logprob;
  }
  SampleContext context;
  context.position = position;
  return sampler.Sample(logprobs, session.params, context);
}

absl::Status CheckNumbers(const SampledRow& row, int64_t vocabulary) {
  if (row.status != SampledStatus::kOk) {
    return absl::InternalError(
        "its numbers are not finite, or nobody knows "
        "its token");
  }
  const auto known = [vocabulary](int32_t id) {
    return id >= 0 && id < vocabulary;
  };
  if (!known(row.token)) {
    return absl::InternalError(absl::StrCat("there is no token ", row.token));
  }
  const int64_t alternatives =
      std::min<int64_t>(vocabulary, kSelfTestAlternatives);
  if (static_cast<int64_t>(row.top_logprobs.size()) != alternatives) {
    return absl::InternalError(absl::StrCat(
        row.top_logprobs.size(), " alternatives, not ", alternatives));
  }
  for (const TokenLogprob& other : row.top_logprobs) {
    if (!known(other.token_id) || !IsLogprob(other.logprob)) {
      return absl::InternalError(absl::StrCat(
          "an alternative is token ", other.token_id, " with ", other.logprob));
    }
    if (other.token_id == row.token &&
        std::abs(other.logprob - row.logprob) > kSameLogprob) {
      return absl::InternalError(
          absl::StrCat("token ", row.token, " has ", row.logprob,
                       ", and as an alternative ", other.logprob));
    }
  }
  if (IsLogprob(row.logprob)) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("log P is ", row.logprob));
}

absl::Status CheckDraw(const Sampler& sampler, const SelfTestSession& session,
                       const SampledRow& row, int64_t position) {
  const bool greedy = session.params.temperature == 0;
  // Other draws look beyond the alternatives.
  if (!greedy && session.params.top_k == 0) return absl::OkStatus();
  TXL_ASSIGN_OR_RETURN(const int32_t expected,
                       DrawnFromAlternatives(sampler, session, row, position));
  if (row.token == expected) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("token ", row.token,
                   " was drawn; what the row says of its "
                   "alternatives gives ",
                   expected));
}

}  // namespace

absl::Status CheckSelfTest(const VocabularyBins& bins,
                           absl::Span<const SelfTestSession> sessions,
                           absl::Span<const SelfTestTrace> traces) {
  const Sampler sampler(bins);
  for (size_t i = 0; i < traces.size(); ++i) {
    const SelfTestTrace& trace = traces[i];
    for (size_t row = 0; row < trace.rows.size(); ++row) {
      absl::Status status = CheckNumbers(trace.rows[row], bins.ends.back());
      if (status.ok() && row >= sessions[i].targets.size()) {
        status = CheckDraw(sampler, sessions[i], trace.rows[row],
                           trace.position + static_cast<int64_t>(row) + 1);
      }
      if (!status.ok()) {
        return absl::InternalError(
            absl::StrCat(SelfTestPlace(trace, i, row), ": ", status.message()));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace txl
