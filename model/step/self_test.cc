#include "model/step/self_test.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "model/memory/state_image.h"
#include "model/sampling/sampler.h"

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
  return {.logprobs = logprobs,
          .logprob = kWorstLogprob * logprobs,
          .layer = rows,
          .row = kWorstRow * rows,
          .draw = logprobs};
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

namespace {

// What two roundings of one number are apart.
constexpr float kSameLogprob = 1e-4f;

bool IsLogprob(float x) { return x <= 1e-3f; }  // false for NaN

// What the sampler draws when it sees the alternatives alone.
absl::StatusOr<int32_t> DrawnFromAlternatives(const Sampler& sampler,
                                              const SelfTestSession& session,
                                              const RowResult& row,
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

absl::Status CheckNumbers(const RowResult& row, int64_t vocabulary) {
  if (!row.status.ok() || row.rejected) {
    return absl::InternalError(
        "its numbers are not finite, or its "
        "token is unknown");
  }
  const auto known = [vocabulary](int32_t id) {
    return id >= 0 && id < vocabulary;
  };
  if (!known(row.token_id)) {
    return absl::InternalError(
        absl::StrCat("there is no token ", row.token_id));
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
    if (other.token_id == row.token_id &&
        std::abs(other.logprob - row.logprob) > kSameLogprob) {
      return absl::InternalError(
          absl::StrCat("token ", row.token_id, " has ", row.logprob,
                       ", and as an alternative ", other.logprob));
    }
  }
  if (IsLogprob(row.logprob)) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("log P is ", row.logprob));
}

absl::Status CheckDraw(const Sampler& sampler, const SelfTestSession& session,
                       const RowResult& row, int64_t position) {
  const bool greedy = session.params.temperature == 0;
  // Other draws look beyond the alternatives.
  if (!greedy && session.params.top_k == 0) return absl::OkStatus();
  TXL_ASSIGN_OR_RETURN(const int32_t expected,
                       DrawnFromAlternatives(sampler, session, row, position));
  if (row.token_id == expected) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("token ", row.token_id,
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

namespace {

absl::Status Differs(const std::string& where, const std::string& what) {
  return absl::InternalError(absl::StrCat(where, ": ", what));
}

// Sum of squares, for roots of means.
struct Squares {
  double sum = 0;
  int64_t count = 0;

  void Add(double x) {
    sum += x * x;
    ++count;
  }
  double Root() const {
    return count == 0 ? 0 : std::sqrt(sum / static_cast<double>(count));
  }
};

void Keep(double difference, const std::string& where, SelfTestWorst& worst) {
  if (difference > worst.difference) worst = {difference, where};
}

// Infinite where one of them is no number.
double Distance(double x, double y) {
  if (x == y) return 0;
  const double distance = std::abs(x - y);
  return distance >= 0 ? distance : std::numeric_limits<double>::infinity();
}

// The error that log-probabilities have even if they are all alike: float32's
// rounding at some 10 nats, and that of the logarithm of a sum.
constexpr double kLeastSpread = 0.05;

class Logprobs {
 public:
  explicit Logprobs(SelfTestDeviation& deviation) : deviation_(deviation) {}

  void Add(const RowResult& found, const ReferenceRow& expected,
           const std::string& where) {
    const double scale = std::max(expected.spread, kLeastSpread);
    Keep(expected.draw_distance / scale,
         absl::StrCat(where, ": the draw of token ", found.token_id),
         deviation_.draw);
    const auto add = [&](double x, double y, const std::string& what) {
      const double difference = Distance(x, y) / scale;
      squares_.Add(difference);
      if (difference <= deviation_.logprob.difference) return;
      deviation_.logprob = {difference,
                            absl::StrCat(where, ": ", what, " is ", x,
                                         ", the reference has ", y)};
    };
    add(found.logprob, expected.logprob,
        absl::StrCat("log P of token ", found.token_id));
    for (size_t i = 0; i < found.top_logprobs.size(); ++i) {
      const TokenLogprob& other = found.top_logprobs[i];
      add(other.logprob, expected.alternatives[i],
          absl::StrCat("log P of token ", other.token_id));
      // Sorted lists are no farther apart than what they were sorted from.
      add(other.logprob, expected.best[i], absl::StrCat("alternative ", i));
    }
  }
  double Root() const { return squares_.Root(); }

 private:
  SelfTestDeviation& deviation_;
  Squares squares_;
};

absl::Status SameSize(const StateImage& found, const ReferenceTrace& trace) {
  const StateImage& expected = trace.end;
  if (found.position == expected.position && found.rows == trace.state_rows &&
      found.identity.n_layer == expected.identity.n_layer &&
      found.identity.d_model == expected.identity.d_model) {
    return absl::OkStatus();
  }
  return absl::InternalError(absl::StrCat(
      "its state has ", found.rows, " rows before position ", found.position,
      ", the reference ", trace.state_rows, " before ", expected.position));
}

// Rows that a state had before the session's own are its start's, the same
// bits, or, where it began with none, all alike.
absl::Status CheckOlderRows(const SelfTestTrace& trace, int64_t older,
                            const std::string& where) {
  const StateImage& end = *trace.end;
  const StateImage* const start = trace.start.get();
  for (int64_t layer = 0; layer < end.identity.n_layer; ++layer) {
    for (int64_t row = 0; row < older; ++row) {
      const absl::Span<const uint8_t> wanted =
          start == nullptr ? RowOf(end, layer, 0)
                           : RowOf(*start, layer, start->rows - older + row);
      if (RowOf(end, layer, row) == wanted) continue;
      return Differs(
          absl::StrCat(where, ", layer ", layer),
          absl::StrCat("row ", row,
                       start == nullptr
                           ? " of its cleared state is not like the first"
                           : " of its state was moved and is another one"));
    }
  }
  return absl::OkStatus();
}

// Rows of one layer of a session, found and expected.
struct LayerRows {
  absl::Span<const float> found, expected;  // [numbers, width]
  absl::Span<const int64_t> numbers;        // of the rows in the state
  int64_t width = 0;
  double growth = 1;

  double Difference(int64_t row, int64_t column) const {
    return double{found[row * width + column]} -
           double{expected[row * width + column]};
  }
};

absl::Status MeasureLayer(const LayerRows& layer, const std::string& where,
                          SelfTestDeviation& deviation) {
  Squares size;
  for (const float x : layer.expected) size.Add(x);
  const double scale = layer.growth * (size.Root() > 0 ? size.Root() : 1);
  Squares all;
  for (size_t row = 0; row < layer.numbers.size(); ++row) {
    Squares one;
    for (int64_t column = 0; column < layer.width; ++column) {
      one.Add(layer.Difference(static_cast<int64_t>(row), column) / scale);
    }
    const std::string number = absl::StrCat("row ", layer.numbers[row]);
    if (!(one.sum <= std::numeric_limits<double>::max())) {
      return Differs(where, number + " is not finite");
    }
    all.sum += one.sum;
    all.count += one.count;
    Keep(one.Root(), absl::StrCat(where, ", ", number, " of its state"),
         deviation.row);
  }
  Keep(all.Root(), where, deviation.layer);
  return absl::OkStatus();
}

// The rows that are measured: the session's own, and of a cleared state that
// has rows, all alike, the first one from `first` on.
std::vector<int64_t> MeasuredRows(const SelfTestTrace& trace, int64_t older,
                                  int64_t first) {
  std::vector<int64_t> rows;
  if (older > first && trace.start == nullptr) rows.push_back(first);
  for (int64_t row = older; row < trace.end->rows; ++row) rows.push_back(row);
  return rows;
}

absl::Status MeasureState(const SelfTestTrace& trace,
                          const ReferenceTrace& reference, size_t session,
                          SelfTestDeviation& deviation) {
  const std::string where = absl::StrCat("session ", session);
  if (absl::Status same = SameSize(*trace.end, reference); !same.ok()) {
    return Differs(where, std::string(same.message()));
  }
  const StateImage& expected = reference.end;
  const int64_t fed = trace.end->position - trace.position;
  const int64_t older = std::max<int64_t>(0, reference.state_rows - fed);
  TXL_RETURN_IF_ERROR(CheckOlderRows(trace, older, where));
  const int64_t first = reference.state_rows - expected.rows;
  const std::vector<int64_t> rows = MeasuredRows(trace, older, first);
  TXL_ASSIGN_OR_RETURN(const LargeVector<float> found,
                       WidenRows(WithRows(*trace.end, rows)));
  std::vector<int64_t> newest = rows;
  for (int64_t& row : newest) row -= first;
  TXL_ASSIGN_OR_RETURN(const LargeVector<float> wanted,
                       WidenRows(WithRows(expected, newest)));
  const int64_t width = expected.identity.d_model;
  const int64_t numbers = static_cast<int64_t>(rows.size()) * width;
  for (int64_t layer = 0; layer < expected.identity.n_layer; ++layer) {
    const LayerRows both = {
        absl::MakeSpan(found).subspan(layer * numbers, numbers),
        absl::MakeSpan(wanted).subspan(layer * numbers, numbers), rows, width,
        SelfTestGrowth(layer)};
    TXL_RETURN_IF_ERROR(
        MeasureLayer(both, absl::StrCat(where, ", layer ", layer), deviation));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SelfTestDeviation> MeasureSelfTest(
    absl::Span<const SelfTestTrace> traces,
    absl::Span<const ReferenceTrace> expected) {
  SelfTestDeviation deviation;
  Logprobs logprobs(deviation);
  for (size_t i = 0; i < traces.size(); ++i) {
    for (size_t row = 0; row < traces[i].rows.size(); ++row) {
      const RowResult& found = traces[i].rows[row];
      const ReferenceRow& wanted = expected[i].rows[row];
      logprobs.Add(found, wanted, SelfTestPlace(traces[i], i, row));
    }
    TXL_RETURN_IF_ERROR(MeasureState(traces[i], expected[i], i, deviation));
  }
  deviation.logprobs = logprobs.Root();
  return deviation;
}

}  // namespace txl
