#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "model/base/status_macros.h"
#include "model/memory/image_rows.h"
#include "model/sampling/draw.h"
#include "model/step/self_test_run.h"

namespace txl {
namespace {

double Spread(absl::Span<const float> words) {
  double sum = 0;
  double squares = 0;
  int64_t count = 0;
  for (const float word : words) {
    if (!(word > -1e30f)) continue;  // a word that cannot come
    sum += word;
    squares += double{word} * word;
    ++count;
  }
  if (count == 0) return 0;
  const double mean = sum / static_cast<double>(count);
  return std::sqrt(
      std::max(0.0, squares / static_cast<double>(count) - mean * mean));
}

ReferenceRow ReferenceRowOf(const SampledRow& found,
                            NextTokenDistribution& expected) {
  ReferenceRow row;
  row.logprob = LogprobOf(expected, found.token);
  for (const TokenLogprob& other : found.top_logprobs) {
    row.alternatives.push_back(LogprobOf(expected, other.token_id));
  }
  const auto count = static_cast<int>(found.top_logprobs.size());
  for (const TokenLogprob& best : TopLogprobs(expected, count)) {
    row.best.push_back(best.logprob);
  }
  row.spread = Spread(expected.Words());
  return row;
}

// How far `uniform` is beside [below, below + share), of `all`.
double Beside(double uniform, double below, double share, double all) {
  return std::max(
      {0.0, below / all - uniform, uniform - (below + share) / all});
}

double SumOfExp(absl::Span<const float> logprobs) {
  double sum = 0;
  for (const float logprob : logprobs) sum += std::exp(double{logprob});
  return sum;
}

// The plain draw at temperature 1, as cluster_draw.h defines it: one among the
// first bin's words and the clusters, then one among a cluster's words.
double DrawDistance(NextTokenDistribution& distribution, int32_t token,
                    uint64_t seed, int64_t position) {
  const VocabularyBins& bins = distribution.bins();
  UniformSequence uniforms(seed, position);
  const absl::Span<const float> words = distribution.Words();
  const size_t bin = bins.BinOf(token);
  double before = 0;  // of the clusters that are before the token's
  double all = SumOfExp(words);
  for (size_t c = 0; c < bins.clusters(); ++c) {
    const double mass = std::exp(distribution.ClusterMass(c));
    all += mass;
    if (c + 1 < bin) before += mass;
  }
  if (bin == 0) {
    return Beside(uniforms.Next(), SumOfExp(words.first(token)),
                  std::exp(double{words[token]}), all);
  }
  const double head = Beside(uniforms.Next(), SumOfExp(words) + before,
                             std::exp(distribution.ClusterMass(bin - 1)), all);
  const absl::Span<const float> cluster = distribution.ClusterWords(bin - 1);
  const int64_t index = token - bins.ends[bin - 1];
  return std::max(head,
                  Beside(uniforms.Next(), SumOfExp(cluster.first(index)),
                         std::exp(double{cluster[index]}), SumOfExp(cluster)));
}

absl::Status StartReference(ModelStep& reference, const StateImage* start) {
  if (start == nullptr) {
    reference.Clear(0);
    return absl::OkStatus();
  }
  StateImage image;
  image.identity = reference.identity();
  image.position = start->position;
  image.rows = start->rows;
  TXL_ASSIGN_OR_RETURN(const LargeVector<float> rows, WidenRows(*start));
  image.data.resize(rows.size() * sizeof(float));
  if (!rows.empty()) {
    std::memcpy(image.data.data(), rows.data(), image.data.size());
  }
  image.Seal();
  return reference.Import(0, image);
}

absl::StatusOr<ReferenceTrace> Follow(ModelStep& reference,
                                      const SelfTestSession& session,
                                      const SelfTestTrace& trace) {
  TXL_RETURN_IF_ERROR(StartReference(reference, trace.start.get()));
  std::vector<int32_t> all(trace.tokens.size());
  std::iota(all.begin(), all.end(), 0);
  const StepSegment segment = {0, trace.position, trace.tokens, all};
  const absl::Span<NextTokenDistribution* const> distributions =
      reference.Run({&segment, 1});
  const bool plain =
      session.params.temperature > 0 && session.params.top_k == 0;
  ReferenceTrace expected;
  for (size_t row = 0; row < all.size(); ++row) {
    NextTokenDistribution& distribution = *distributions[row];
    ReferenceRow made = ReferenceRowOf(trace.rows[row], distribution);
    if (plain && row >= session.targets.size()) {
      made.draw_distance =
          DrawDistance(distribution, trace.rows[row].token, session.params.seed,
                       trace.position + static_cast<int64_t>(row) + 1);
    }
    expected.rows.push_back(std::move(made));
  }
  expected.end =
      reference.Export(0, trace.position + static_cast<int64_t>(all.size()));
  return expected;
}

}  // namespace

absl::StatusOr<std::vector<ReferenceTrace>> FollowSelfTest(
    ModelStep& reference, absl::Span<const SelfTestSession> sessions,
    absl::Span<const SelfTestTrace> traces) {
  std::vector<ReferenceTrace> expected;
  for (size_t i = 0; i < sessions.size(); ++i) {
    TXL_ASSIGN_OR_RETURN(expected.emplace_back(),
                         Follow(reference, sessions[i], traces[i]));
  }
  return expected;
}

}  // namespace txl
