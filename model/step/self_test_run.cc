#include "model/step/self_test_run.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "model/memory/state_image.h"
#include "model/sampling/draw.h"

namespace txl {
namespace {

// A memory that is full, at a position behind which its ring begins again after
// three rows. Its rows are the source's, in an order without a period.
StateImage FullMemory(const StateImage& source, const RingGeometry& ring) {
  StateImage full;
  full.format_version = source.format_version;
  full.identity = source.identity;
  full.position = 2 * ring.capacity() - 3;
  full.rows = source.rows == 0 ? 0 : ring.mem_len;
  const int64_t layers = source.identity.n_layer;
  const int64_t row_bytes =
      source.rows == 0 ? 0 : source.Bytes() / (layers * source.rows);
  full.data.resize(layers * full.rows * row_bytes);
  for (int64_t layer = 0; layer < layers; ++layer) {
    for (int64_t row = 0; row < full.rows; ++row) {
      const int64_t other = (7 * row + row / source.rows) % source.rows;
      std::memcpy(
          full.data.data() + (layer * full.rows + row) * row_bytes,
          source.data.data() + (layer * source.rows + other) * row_bytes,
          row_bytes);
    }
  }
  full.Seal();
  return full;
}

// Ticks of a row, for models with beat positions. Rows of a session differ by
// beat and by bar.
int32_t TicksAt(int64_t position) {
  return static_cast<int32_t>(11 * (position % 997));
}

class Run {
 public:
  Run(SamplingStep& step, absl::Span<const SelfTestSession> sessions)
      : step_(step), sessions_(sessions), traces_(sessions.size()) {}

  absl::Status Start(size_t index);
  void Queue(absl::Span<const SelfTestShare> shares);
  void CollectAll() {
    while (!queued_.empty()) Collect();
  }
  void End(size_t index);
  std::vector<SelfTestTrace> Take() { return std::move(traces_); }

 private:
  StepRow RowOf(size_t index, int64_t row) const;
  void Collect();
  absl::Status Import(size_t index);

  struct Queued {
    std::unique_ptr<QueuedStep> step;
    std::vector<SelfTestShare> shares;
  };

  SamplingStep& step_;
  const absl::Span<const SelfTestSession> sessions_;
  std::vector<SelfTestTrace> traces_;
  std::vector<Queued> queued_;  // and not collected
};

absl::Status Run::Import(size_t index) {
  const std::unique_ptr<StateArrival> arrival =
      step_.Import(sessions_[index].slot, traces_[index].start);
  const absl::Status status = arrival->Bring();
  if (status.ok()) return status;
  return absl::InternalError(absl::StrCat(
      "session ", index, ": its import was refused: ", status.message()));
}

absl::Status Run::Start(size_t index) {
  const SelfTestSession& session = sessions_[index];
  SelfTestTrace& trace = traces_[index];
  if (session.start == SelfTestStart::kClear) {
    step_.Clear(session.slot);
  } else {
    const std::shared_ptr<const StateImage>& source = traces_[session.from].end;
    trace.start = session.start == SelfTestStart::kFull
                      ? std::make_shared<const StateImage>(
                            FullMemory(*source, step_.ring()))
                      : source;
    trace.position = trace.start->position;
    if (session.start == SelfTestStart::kCopy) {
      step_.Copy(sessions_[session.from].slot, session.slot);
    } else {
      TXL_RETURN_IF_ERROR(Import(index));
    }
  }
  SampleContext context;
  context.position = 0;  // nothing is banned
  step_.Configure(session.slot, session.params, context);
  trace.tokens = session.prompt;
  trace.tokens.resize(session.rows(), kLastSampled);
  trace.rows.resize(session.rows());
  return absl::OkStatus();
}

StepRow Run::RowOf(size_t index, int64_t row) const {
  const SelfTestSession& session = sessions_[index];
  const auto scored = static_cast<int64_t>(session.targets.size());
  StepRow out;
  out.slot = session.slot;
  out.position = traces_[index].position + row;
  out.token_id = traces_[index].tokens[row];
  out.kind = row < scored ? RowKind::kScore : RowKind::kDecode;
  if (row < scored) out.score_target = session.targets[row];
  out.top_logprobs = kSelfTestAlternatives;
  out.ticks = TicksAt(out.position);
  return out;
}

void Run::Queue(absl::Span<const SelfTestShare> shares) {
  if (queued_.size() == SamplingStep::kDepth) Collect();
  std::vector<StepRow> rows;
  for (const SelfTestShare& share : shares) {
    for (int64_t i = 0; i < share.rows; ++i) {
      rows.push_back(RowOf(share.session, share.first + i));
    }
  }
  queued_.push_back({step_.Queue(rows), {shares.begin(), shares.end()}});
}

void Run::Collect() {
  const Queued queued = std::move(queued_.front());
  queued_.erase(queued_.begin());
  SampledRows results = queued.step->Collect();
  size_t next = 0;
  for (const SelfTestShare& share : queued.shares) {
    SelfTestTrace& trace = traces_[share.session];
    for (int64_t i = 0; i < share.rows; ++i) {
      trace.rows[share.first + i] = std::move(results.rows.at(next++));
    }
  }
}

void Run::End(size_t index) {
  const SelfTestSession& session = sessions_[index];
  SelfTestTrace& trace = traces_[index];
  for (size_t row = session.prompt.size(); row < trace.tokens.size(); ++row) {
    trace.tokens[row] = trace.rows[row - 1].token_id;
  }
  trace.end = std::make_shared<const StateImage>(
      step_.Export(session.slot, trace.position + session.rows())->Take());
}

}  // namespace

absl::StatusOr<std::vector<SelfTestTrace>> RunSelfTest(
    SamplingStep& step, absl::Span<const SelfTestSession> sessions,
    const SelfTestLimits& limits) {
  Run run(step, sessions);
  for (const SelfTestGroup group : SelfTestGroups(sessions)) {
    for (size_t i = group.begin; i < group.end; ++i) {
      TXL_RETURN_IF_ERROR(run.Start(i));
    }
    for (const auto& shares : SelfTestSteps(sessions, group, limits)) {
      run.Queue(shares);
    }
    run.CollectAll();
    for (size_t i = group.begin; i < group.end; ++i) run.End(i);
  }
  return run.Take();
}

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

ReferenceRow ReferenceRowOf(const RowResult& found,
                            NextTokenDistribution& expected) {
  ReferenceRow row;
  row.logprob = LogprobOf(expected, found.token_id);
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

absl::Status StartReference(ModelStep& reference, int32_t slot,
                            const StateImage* start) {
  if (start == nullptr) {
    reference.Clear(slot);
    return absl::OkStatus();
  }
  return reference.ImportForeign(slot, *start);
}

ReferenceTrace ReferenceOf(
    const SelfTestSession& session, const SelfTestTrace& trace,
    absl::Span<NextTokenDistribution* const> distributions) {
  const bool plain =
      session.params.temperature > 0 && session.params.top_k == 0;
  ReferenceTrace expected;
  for (size_t row = 0; row < distributions.size(); ++row) {
    NextTokenDistribution& distribution = *distributions[row];
    ReferenceRow made = ReferenceRowOf(trace.rows[row], distribution);
    if (plain && row >= session.targets.size()) {
      made.draw_distance = DrawDistance(
          distribution, trace.rows[row].token_id, session.params.seed,
          trace.position + static_cast<int64_t>(row) + 1);
    }
    expected.rows.push_back(std::move(made));
  }
  return expected;
}

}  // namespace

absl::StatusOr<std::vector<ReferenceTrace>> FollowSelfTest(
    ModelStep& reference, absl::Span<const SelfTestSession> sessions,
    absl::Span<const SelfTestTrace> traces) {
  std::vector<int32_t> all(kSelfTestRows);
  std::iota(all.begin(), all.end(), 0);
  std::vector<std::vector<int32_t>> ticks(traces.size());
  std::vector<StepSegment> segments;
  for (size_t i = 0; i < traces.size(); ++i) {
    const SelfTestTrace& trace = traces[i];
    const auto slot = static_cast<int32_t>(i);
    TXL_RETURN_IF_ERROR(StartReference(reference, slot, trace.start.get()));
    const auto outputs = absl::MakeSpan(all).first(trace.tokens.size());
    for (const int32_t row : outputs) {
      ticks[i].push_back(TicksAt(trace.position + row));
    }
    segments.push_back({slot, trace.position, trace.tokens, outputs, ticks[i]});
  }
  absl::Span<NextTokenDistribution* const> rest = reference.Run(segments);
  std::vector<ReferenceTrace> expected;
  for (size_t i = 0; i < traces.size(); ++i) {
    const size_t rows = traces[i].tokens.size();
    ReferenceTrace& made = expected.emplace_back(
        ReferenceOf(sessions[i], traces[i], rest.first(rows)));
    rest.remove_prefix(rows);
    const int64_t end = traces[i].position + static_cast<int64_t>(rows);
    made.state_rows = reference.ring().RowsBefore(end);
    // The session's own, and one that it began with.
    made.end =
        reference.Export(segments[i].slot, end, static_cast<int64_t>(rows) + 1);
  }
  return expected;
}

int64_t SelfTestRows(absl::Span<const SelfTestSession> sessions) {
  int64_t rows = 0;
  for (const SelfTestSession& session : sessions) rows += session.rows();
  return rows;
}

namespace {

// Greedy; the filtered draw; the plain one, clusters first.
enum class Draw { kBest, kOfTen, kOfAll };

struct Outline {
  SelfTestStart start;
  int from;
  int lane;                   // its slot's, of those that are used
  std::vector<int64_t> cuts;  // of the prompt
  int64_t drawn;
  Draw draw;
};

// Where targets begin in the order of ids: behind those that are fed.
constexpr int64_t kTargets = 1001;

// Odd cuts, as requests come. The last one begins in the slot whose memory was
// full.
const std::vector<Outline>& Outlines() {
  static const auto* const outlines = new std::vector<Outline>{
      {SelfTestStart::kClear, -1, 0, {1, 3, 2, 7}, 4, Draw::kBest},
      {SelfTestStart::kClear, -1, 1, {5, 1, 4}, 5, Draw::kOfTen},
      {SelfTestStart::kFull, 0, 2, {2, 4}, 4, Draw::kOfAll},
      {SelfTestStart::kImport, 0, 0, {2, 3}, 3, Draw::kOfTen},
      {SelfTestStart::kCopy, 3, 1, {1, 3}, 2, Draw::kBest},
      {SelfTestStart::kClear, -1, 2, {4, 2}, 4, Draw::kOfAll}};
  return *outlines;
}

// First, middle and last: where offsets are smallest and largest.
std::vector<int32_t> Lanes(int32_t slots) {
  std::vector<int32_t> lanes = {0};
  if (slots > 2) lanes.push_back(slots / 2);
  if (slots > 1) lanes.push_back(slots - 1);
  return lanes;
}

// Numbers without a pattern (Knuth's multiplicative hashing).
int64_t Scattered(int64_t index, int64_t size) {
  const auto hash = static_cast<uint32_t>(index + 1) * uint32_t{2654435761};
  return static_cast<int64_t>((uint64_t{hash} * static_cast<uint64_t>(size)) >>
                              32);
}

// All bins in turn: now any of their ids, now their first, now their last one.
int32_t IdOf(const VocabularyBins& bins, int64_t index) {
  const auto count = static_cast<int64_t>(bins.ends.size());
  const int64_t bin = index % count;
  const int64_t begin = bin == 0 ? 0 : bins.ends[bin - 1];
  const int64_t end = bins.ends[bin];
  switch ((index / count) % 4) {
    case 1:
      return static_cast<int32_t>(begin);
    case 3:
      return static_cast<int32_t>(end - 1);
    default:
      return static_cast<int32_t>(begin + Scattered(index, end - begin));
  }
}

SamplingParams ParamsOf(Draw draw, uint64_t seed) {
  SamplingParams params;
  params.seed = seed;
  if (draw == Draw::kBest) params.temperature = 0;
  if (draw == Draw::kOfTen) {
    params.temperature = 0.8;
    params.top_k = 10;
  }
  return params;
}

}  // namespace

std::vector<SelfTestSession> SelfTestSessions(const VocabularyBins& bins,
                                              int32_t slots) {
  const std::vector<int32_t> lanes = Lanes(slots);
  std::vector<SelfTestSession> sessions;
  int64_t fed = 0;  // ids taken so far
  for (const Outline& outline : Outlines()) {
    if (outline.start == SelfTestStart::kCopy && lanes.size() == 1) continue;
    SelfTestSession session;
    session.start = outline.start;
    session.from = outline.from;
    session.slot = lanes[outline.lane % lanes.size()];
    session.cuts = outline.cuts;
    session.drawn = outline.drawn;
    session.params = ParamsOf(outline.draw, sessions.size() + 1);
    for (const int64_t cut : outline.cuts) {
      for (int64_t i = 0; i < cut; ++i) {
        session.prompt.push_back(IdOf(bins, fed));
        session.targets.push_back(IdOf(bins, kTargets + fed));
        ++fed;
      }
    }
    session.targets.pop_back();
    session.cuts.insert(session.cuts.end(), session.drawn - 1, 1);
    sessions.push_back(std::move(session));
  }
  return sessions;
}

std::vector<SelfTestGroup> SelfTestGroups(
    absl::Span<const SelfTestSession> sessions) {
  std::vector<SelfTestGroup> groups;
  for (size_t i = 0; i < sessions.size(); ++i) {
    const auto stands_apart = [&](const SelfTestGroup& group) {
      if (sessions[i].from >= static_cast<int>(group.begin)) return false;
      return std::none_of(sessions.begin() + group.begin, sessions.begin() + i,
                          [&](const SelfTestSession& other) {
                            return other.slot == sessions[i].slot;
                          });
    };
    if (groups.empty() || !stands_apart(groups.back()))
      groups.push_back({i, i});
    groups.back().end = i + 1;
  }
  return groups;
}

std::vector<std::vector<SelfTestShare>> SelfTestSteps(
    absl::Span<const SelfTestSession> sessions, SelfTestGroup group,
    const SelfTestLimits& limits) {
  struct Place {
    int64_t row = 0;
    size_t cut = 0;
    int64_t left = 0;  // of that cut
  };
  std::vector<Place> places(group.end - group.begin);
  for (size_t i = 0; i < places.size(); ++i) {
    places[i].left = sessions[group.begin + i].cuts[0];
  }
  std::vector<std::vector<SelfTestShare>> steps;
  for (;;) {
    std::vector<SelfTestShare> step;
    int64_t room = limits.max_rows;
    for (size_t i = 0; i < places.size(); ++i) {
      // Each step begins with another session, so that all get on.
      const size_t at = (i + steps.size()) % places.size();
      Place& place = places[at];
      const SelfTestSession& session = sessions[group.begin + at];
      const int64_t rows = std::min({place.left, room, limits.spare});
      if (rows == 0) continue;
      step.push_back({group.begin + at, place.row, rows});
      room -= rows;
      place.row += rows;
      place.left -= rows;
      if (place.left > 0 || ++place.cut == session.cuts.size()) continue;
      place.left = session.cuts[place.cut];
    }
    if (step.empty()) return steps;
    steps.push_back(std::move(step));
  }
}

}  // namespace txl
