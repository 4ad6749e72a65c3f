#include "model/step/sampling_on_host.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <utility>

namespace txl {
namespace {

bool IsNumber(double x) {
  return x < std::numeric_limits<double>::infinity();  // false for NaN
}

// A model whose numbers ran away shows it in every part of the head.
bool HoldsNumbers(NextTokenDistribution& distribution) {
  const absl::Span<const float> words = distribution.Words();
  return std::all_of(words.begin(), words.end(), IsNumber);
}

// A slot's sampling, and what it has drawn.
struct SlotDraws {
  SamplingParams params;
  std::vector<int32_t> recent_ids, banned_ids;
  int64_t min_position = 0;
  // Empty where the last sampling row failed, or where there was none.
  std::optional<int32_t> last;

  SampleContext ContextAt(int64_t position) const {
    SampleContext context;
    context.recent_ids = recent_ids;
    context.position = position;
    if (position < min_position) context.banned_ids = banned_ids;
    return context;
  }

  void Remember(int32_t token) {
    last = token;
    recent_ids.push_back(token);
    // The last one is what follow_kinds looks at.
    const auto window = static_cast<size_t>(std::max(params.penalty_window, 1));
    if (recent_ids.size() > window) {
      recent_ids.erase(recent_ids.begin(), recent_ids.end() - window);
    }
  }
};

// The rows of a step that run, as a ModelStep takes them.
struct Segments {
  std::vector<StepSegment> segments;
  // What the segments refer to.
  std::vector<int32_t> tokens, ticks, outputs;
  std::vector<size_t> wanted;  // rows with an output
};

// Rows whose input nobody knows are left out, and say so in `results`.
Segments SegmentsOf(absl::Span<const StepRow> rows,
                    const std::vector<SlotDraws>& slots,
                    std::vector<RowResult>& results) {
  Segments made;
  // What segments refer to must stay where it is.
  made.tokens.resize(rows.size());
  made.ticks.resize(rows.size());
  made.outputs.reserve(rows.size());
  bool unknown = false;  // the rest of this slot's rows
  size_t first = 0;      // row of the segment
  for (size_t i = 0; i < rows.size(); ++i) {
    const StepRow& row = rows[i];
    if (row.kind == RowKind::kDerive) continue;
    const std::optional<int32_t>& last = slots[row.slot].last;
    if (i == 0 || rows[i - 1].slot != row.slot) {
      unknown = row.token_id == kLastSampled && !last.has_value();
      first = i;
      if (!unknown) {
        made.segments.push_back({row.slot, row.position, {}, {}});
        made.segments.back().outputs = {
            made.outputs.data() + made.outputs.size(), 0};
      }
    }
    if (unknown) {
      results[i].status = UnknownInput();
      continue;
    }
    made.tokens[i] = row.token_id == kLastSampled ? *last : row.token_id;
    made.ticks[i] = row.ticks;
    StepSegment& segment = made.segments.back();
    segment.tokens = {made.tokens.data() + first, i - first + 1};
    segment.ticks = {made.ticks.data() + first, i - first + 1};
    if (!HasOutput(row.kind)) continue;
    made.outputs.push_back(static_cast<int32_t>(i - first));
    made.wanted.push_back(i);
    segment.outputs = {segment.outputs.data(), segment.outputs.size() + 1};
  }
  return made;
}

// Tokens that are scored or reported say beforehand which clusters will be
// looked at.
std::vector<ClusterOfRow> KnownClusters(absl::Span<const StepRow> rows,
                                        const std::vector<size_t>& wanted,
                                        const VocabularyBins& bins) {
  std::vector<ClusterOfRow> clusters;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const StepRow& row = rows[wanted[i]];
    const size_t first = clusters.size();
    const auto add = [&](int32_t id) {
      const size_t bin = bins.BinOf(id);
      const bool is_new = std::none_of(
          clusters.begin() + first, clusters.end(),
          [&](const ClusterOfRow& other) { return other.cluster + 1 == bin; });
      if (bin > 0 && is_new) {
        clusters.push_back({static_cast<int64_t>(i), bin - 1});
      }
    };
    if (row.kind == RowKind::kScore) add(row.score_target);
    if (row.logprob_ids == nullptr) continue;
    for (const int32_t id : *row.logprob_ids) add(id);
  }
  return clusters;
}

// Before the row is reported: whether what it feeds is what its slot goes on
// with. A row behind one that samples feeds a guess.
RowResult CheckGuess(absl::Span<const StepRow> rows, size_t row,
                     absl::Span<const RowResult> results) {
  RowResult checked;
  if (row == 0 || rows[row - 1].slot != rows[row].slot ||
      rows[row - 1].kind != RowKind::kDecode) {
    return checked;
  }
  const RowResult& before = results[row - 1];
  if (!before.status.ok()) {
    checked.status = UnknownInput();
  } else {
    checked.rejected = before.rejected || before.token_id != rows[row].token_id;
  }
  return checked;
}

RowResult Failed(absl::Status status) {
  RowResult result;
  result.status = std::move(status);
  return result;
}

class DoneStep final : public QueuedStep {
 public:
  explicit DoneStep(SampledRows rows) : rows_(std::move(rows)) {}
  SampledRows Collect() override { return std::move(rows_); }

 private:
  SampledRows rows_;
};

class MovedOut final : public StateTransfer {
 public:
  explicit MovedOut(StateImage image) : image_(std::move(image)) {}
  StateImage Take() override { return std::move(image_); }

 private:
  StateImage image_;
};

class MovedIn final : public StateArrival {
 public:
  explicit MovedIn(absl::Status status) : status_(std::move(status)) {}
  absl::Status Bring() override { return status_; }

 private:
  const absl::Status status_;
};

class SamplingOnHost final : public SamplingStep {
 public:
  SamplingOnHost(std::unique_ptr<ModelStep> step, Sampler sampler,
                 int32_t slots)
      : sampler_(std::move(sampler)), step_(std::move(step)), slots_(slots) {}

  bool CanSample(const SamplingParams& params, int64_t) const override {
    return !params.follow_kinds || sampler_.has_kinds();
  }

  void Configure(int32_t slot, const SamplingParams& params,
                 const SampleContext& context) override {
    slots_[slot] = {params,
                    {context.recent_ids.begin(), context.recent_ids.end()},
                    {context.banned_ids.begin(), context.banned_ids.end()},
                    context.position,
                    std::nullopt};
  }

  std::unique_ptr<QueuedStep> Queue(absl::Span<const StepRow> rows) override {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point start = Clock::now();
    SampledRows results = Run(rows);
    results.device_seconds =
        std::chrono::duration<double>(Clock::now() - start).count();
    return std::make_unique<DoneStep>(std::move(results));
  }

  void Clear(int32_t slot) override {
    slots_[slot].last.reset();
    step_->Clear(slot);
  }

  void Copy(int32_t from, int32_t to) override {
    slots_[to].last.reset();
    step_->Copy(from, to);
  }

  std::unique_ptr<StateArrival> Import(
      int32_t slot, std::shared_ptr<const StateImage> image) override {
    absl::Status status = step_->Import(slot, *image);
    if (status.ok()) slots_[slot].last.reset();
    return std::make_unique<MovedIn>(std::move(status));
  }

  std::unique_ptr<StateTransfer> Export(int32_t slot,
                                        int64_t position) override {
    return std::make_unique<MovedOut>(step_->Export(slot, position));
  }

  bool verifies_guesses() const override { return step_->depends_on_no_cut(); }
  bool derives() const override { return step_->derives(); }
  const RingGeometry& ring() const override { return step_->ring(); }
  const StateIdentity& identity() const override { return step_->identity(); }
  int64_t BytesPerSlot() const override { return step_->BytesPerSlot(); }

 private:
  SampledRows Run(absl::Span<const StepRow> rows);
  void Derive(absl::Span<const StepRow> rows);
  RowResult Report(const StepRow& row, NextTokenDistribution& distribution);

  const Sampler sampler_;
  const std::unique_ptr<ModelStep> step_;
  std::vector<SlotDraws> slots_;
};

SampledRows SamplingOnHost::Run(absl::Span<const StepRow> rows) {
  SampledRows results;
  results.rows.resize(rows.size());
  const Segments made = SegmentsOf(rows, slots_, results.rows);
  // Until a row has drawn, nobody may feed its slot's last token.
  for (const StepRow& row : rows) {
    if (row.kind == RowKind::kDecode) slots_[row.slot].last.reset();
  }
  Derive(rows);
  if (made.segments.empty()) return results;
  const absl::Span<NextTokenDistribution* const> distributions =
      step_->Run(made.segments);
  step_->EvaluateClusters(KnownClusters(rows, made.wanted, sampler_.bins()));
  results.evaluated.resize(sampler_.bins().clusters());
  for (size_t i = 0; i < made.wanted.size(); ++i) {
    const size_t row = made.wanted[i];
    RowResult& result = results.rows[row];
    result = CheckGuess(rows, row, results.rows);
    if (!result.status.ok() || result.rejected) continue;
    result = Report(rows[row], *distributions[i]);
    for (size_t c = 0; c < results.evaluated.size(); ++c) {
      results.evaluated[c] += distributions[i]->IsEvaluated(c) ? 1 : 0;
    }
  }
  return results;
}

// Derives all rows of a slot at once.
void SamplingOnHost::Derive(absl::Span<const StepRow> rows) {
  size_t next = 0;
  while (next < rows.size()) {
    const size_t first = next;
    while (next < rows.size() && rows[next].slot == rows[first].slot) ++next;
    if (rows[first].kind != RowKind::kDerive) continue;
    step_->Derive(rows[first].slot, static_cast<int64_t>(next - first));
  }
}

RowResult SamplingOnHost::Report(const StepRow& row,
                                 NextTokenDistribution& distribution) {
  if (!HoldsNumbers(distribution)) return Failed(NotFinite(row.position));
  SlotDraws& slot = slots_[row.slot];
  const bool samples = row.kind == RowKind::kDecode;
  RowResult result;
  result.token_id = row.score_target;
  if (samples) {
    const absl::StatusOr<int32_t> drawn = sampler_.Sample(
        distribution, slot.params, slot.ContextAt(row.position + 1));
    if (!drawn.ok()) {
      return Failed(drawn.status() == NothingToSample()
                        ? drawn.status()
                        : NotFinite(row.position));
    }
    result.token_id = *drawn;
  }
  result.logprob = LogprobOf(distribution, result.token_id);
  if (!IsNumber(result.logprob)) return Failed(NotFinite(row.position));
  if (samples) slot.Remember(result.token_id);
  if (row.top_logprobs > 0) {
    result.top_logprobs = TopLogprobs(distribution, row.top_logprobs);
  }
  if (row.logprob_ids == nullptr) return result;
  const size_t top = result.top_logprobs.size();
  AppendLogprobs(distribution, *row.logprob_ids, result.top_logprobs);
  for (size_t i = top; i < result.top_logprobs.size(); ++i) {
    if (!IsNumber(result.top_logprobs[i].logprob)) {
      return Failed(NotFinite(row.position));
    }
  }
  return result;
}

}  // namespace

std::unique_ptr<SamplingStep> SampleOnHost(
    std::unique_ptr<ModelStep> step, VocabularyBins bins, int32_t slots,
    std::shared_ptr<const TokenKinds> kinds) {
  return std::make_unique<SamplingOnHost>(
      std::move(step), Sampler(std::move(bins), std::move(kinds)), slots);
}

}  // namespace txl
