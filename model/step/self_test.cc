#include "model/step/self_test.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"

namespace txl {
namespace {

// Largest relative errors. int8: half a step of a row whose largest number is
// some four times its usual one. int4: the reference has the same rounded
// weights; what is left are words, of int8. float32: not its own (2^-25) but
// that of sums in another order, of some thousand terms.
double Roundoff(NumberFormat format) {
  switch (format) {
    case NumberFormat::kF32:
      return 0x1p-20;
    case NumberFormat::kF16:
      return 0x1p-12;
    case NumberFormat::kBF16:
      return 0x1p-9;
    case NumberFormat::kInt8:
    case NumberFormat::kInt4:
      return 0x1p-7;
  }
  return 0;
}

// What lies between what was found and the bounds, and between a mean and the
// worst of what it is of.
constexpr double kMargin = 8;
constexpr double kWorstRow = 3;
constexpr double kWorstLogprob = 8;

}  // namespace

double SelfTestGrowth(int64_t layers) {
  return std::sqrt(1 + 8.0 * static_cast<double>(layers) / 3);
}

SelfTestBounds SelfTestBoundsOf(const SelfTestFormats& formats,
                                int64_t layers) {
  const double rows =
      kMargin *
      std::max({Roundoff(formats.weights), Roundoff(formats.memory),
                Roundoff(formats.derived), Roundoff(formats.products)});
  const double logprobs = rows * SelfTestGrowth(layers);
  SelfTestBounds bounds;
  bounds.logprobs = logprobs;
  bounds.logprob = kWorstLogprob * logprobs;
  bounds.draw = logprobs;
  bounds.layer = rows;
  bounds.row = kWorstRow * rows;
  return bounds;
}

std::string SelfTestPlace(const SelfTestTrace& trace, size_t session,
                          size_t row) {
  return absl::StrCat("session ", session, ", position ",
                      trace.position + static_cast<int64_t>(row));
}

absl::Status JudgeSelfTest(const SelfTestDeviation& deviation,
                           const SelfTestBounds& bounds) {
  const auto judge = [&](const std::string& what, const SelfTestWorst& worst,
                         double bound) {
    if (worst.difference <= bound) return absl::OkStatus();
    return absl::InternalError(absl::StrCat(worst.where, ": ", what, " by ",
                                            worst.difference, ", at most ",
                                            bound));
  };
  TXL_RETURN_IF_ERROR(judge("rows differ", deviation.layer, bounds.layer));
  TXL_RETURN_IF_ERROR(judge("differs", deviation.row, bounds.row));
  TXL_RETURN_IF_ERROR(judge("differs", deviation.logprob, bounds.logprob));
  TXL_RETURN_IF_ERROR(judge("log-probabilities differ in the mean",
                            {deviation.logprobs, "all sessions"},
                            bounds.logprobs));
  return judge("is off", deviation.draw, bounds.draw);
}

absl::StatusOr<SelfTestDeviation> TrySelfTest(SamplingStep& step,
                                              ModelStep& reference,
                                              const VocabularyBins& bins,
                                              const SelfTestLimits& limits) {
  const std::vector<SelfTestSession> sessions =
      SelfTestSessions(bins, limits.slots);
  TXL_ASSIGN_OR_RETURN(const std::vector<SelfTestTrace> traces,
                       RunSelfTest(step, sessions, limits));
  TXL_RETURN_IF_ERROR(CheckSelfTest(bins, sessions, traces));
  TXL_ASSIGN_OR_RETURN(const std::vector<ReferenceTrace> expected,
                       FollowSelfTest(reference, sessions, traces));
  return MeasureSelfTest(traces, expected);
}

}  // namespace txl
