#include "tests/server/engine/host_sampling_step.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace txl {
namespace {

bool IsNumber(double logprob) {
  return logprob < std::numeric_limits<double>::infinity();  // false for NaN
}

bool AreNumbers(NextTokenDistribution& distribution) {
  const absl::Span<const float> words = distribution.Words();
  return std::all_of(words.begin(), words.end(), IsNumber);
}

bool IsFirstOfSlot(absl::Span<const StepRow> rows, size_t row) {
  return row == 0 || rows[row - 1].slot != rows[row].slot;
}

// Consecutive rows of one slot, with memory for what StepSegment refers to.
struct Segment {
  int32_t slot = 0;
  int64_t position = 0;
  std::vector<int32_t> tokens, outputs;
};

}  // namespace

void StepControl::Hold(StepCall call) {
  absl::MutexLock lock(&mutex_);
  held_.insert(call);
}

void StepControl::Release(StepCall call) {
  absl::MutexLock lock(&mutex_);
  held_.erase(call);
}

std::vector<std::string> StepControl::violations() const {
  absl::MutexLock lock(&mutex_);
  return violations_;
}

void StepControl::Begin(StepCall call) {
  absl::MutexLock lock(&mutex_);
  const auto free = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return !held_.contains(call);
  };
  mutex_.Await(absl::Condition(&free));
  const auto error = errors_.find(call);
  if (error == errors_.end()) return;
  const std::exception_ptr exception = error->second;
  errors_.erase(error);
  std::rethrow_exception(exception);
}

void StepControl::Violation(std::string what) {
  absl::MutexLock lock(&mutex_);
  violations_.push_back(std::move(what));
}

class HostQueuedStep final : public QueuedStep {
 public:
  HostQueuedStep(HostSamplingStep* step,
                 std::shared_ptr<HostSamplingStep::Queued> queued)
      : step_(step), queued_(std::move(queued)) {}

  SampledRows Collect() override { return step_->Collect(queued_); }

 private:
  HostSamplingStep* const step_;
  const std::shared_ptr<HostSamplingStep::Queued> queued_;
};

// The image is made in the order of the calls, at the latest for Take.
class HostTransfer final : public StateTransfer {
 public:
  HostTransfer(HostSamplingStep* step, std::shared_ptr<StateImage> image,
               int64_t done_at)
      : step_(step), image_(std::move(image)), done_at_(done_at) {}

  StateImage Take() override {
    step_->control_->Begin(StepCall::kTake);
    absl::MutexLock lock(&step_->mutex_);
    step_->DoUntil(done_at_);
    return std::move(*image_);
  }

 private:
  HostSamplingStep* const step_;
  const std::shared_ptr<StateImage> image_;
  const int64_t done_at_;
};

class HostArrival final : public StateArrival {
 public:
  HostArrival(std::shared_ptr<StepControl> control, absl::Status status)
      : control_(std::move(control)), status_(std::move(status)) {}

  absl::Status Bring() override {
    control_->Begin(StepCall::kBring);
    return status_;
  }

 private:
  const std::shared_ptr<StepControl> control_;
  const absl::Status status_;
};

HostSamplingStep::HostSamplingStep(std::unique_ptr<ModelStep> step,
                                   VocabularyBins bins,
                                   const HostSamplingOptions& options,
                                   std::shared_ptr<StepControl> control)
    : sampler_(std::move(bins), options.kinds),
      options_(options),
      control_(std::move(control)),
      step_(std::move(step)),
      slots_(options.slots) {}

void HostSamplingStep::Begin(StepCall call) {
  {
    absl::MutexLock lock(&mutex_);
    if (!caller_.has_value()) caller_ = std::this_thread::get_id();
    if (caller_ != std::this_thread::get_id()) {
      control_->Violation("calls from several threads");
    }
  }
  control_->Begin(call);
}

int64_t HostSamplingStep::Add(std::function<void()> work) {
  work_.push_back(std::move(work));
  return ++added_;
}

void HostSamplingStep::DoUntil(int64_t number) {
  while (done_ < number) {
    work_.front()();
    work_.pop_front();
    ++done_;
  }
}

bool HostSamplingStep::CanSample(const SamplingParams& params,
                                 int64_t banned_ids) const {
  return banned_ids <= options_.most_banned &&
         (!params.follow_kinds || options_.kinds != nullptr);
}

void HostSamplingStep::Configure(int32_t slot, const SamplingParams& params,
                                 const SampleContext& context) {
  Begin(StepCall::kConfigure);
  if (!CanSample(params, static_cast<int64_t>(context.banned_ids.size()))) {
    control_->Violation("configured with what it cannot sample");
  }
  Slot made;
  made.configured = true;
  made.params = params;
  made.recent_ids.assign(context.recent_ids.begin(), context.recent_ids.end());
  made.banned_ids.assign(context.banned_ids.begin(), context.banned_ids.end());
  made.min_position = context.position;
  absl::MutexLock lock(&mutex_);
  slots_[slot].configured = true;
  Add([this, slot, made]()
          ABSL_NO_THREAD_SAFETY_ANALYSIS { slots_[slot] = made; });
}

void HostSamplingStep::CheckRows(absl::Span<const StepRow> rows) {
  if (rows.empty()) control_->Violation("a step without rows");
  if (static_cast<int>(queued_.size()) >= kDepth) {
    control_->Violation("more steps than may be queued");
  }
  std::set<int32_t> seen;
  for (size_t i = 0; i < rows.size(); ++i) {
    const StepRow& row = rows[i];
    const std::string name = absl::StrCat("row ", i, ": ");
    if (row.kind == RowKind::kDecode && !slots_[row.slot].configured) {
      control_->Violation(name + "samples in a slot not configured");
    }
    if (std::max<int64_t>(row.top_logprobs, row.reported_ids()) >
        kMostTopLogprobs) {
      control_->Violation(name + "too many alternatives");
    }
    if (IsFirstOfSlot(rows, i)) {
      if (!seen.insert(row.slot).second) {
        control_->Violation(name + "rows of a slot do not stand together");
      }
      continue;
    }
    if (row.position != rows[i - 1].position + 1) {
      control_->Violation(name + "positions are not consecutive");
    }
    if (row.token_id == kLastSampled) {
      control_->Violation(name + "last token not in a slot's first row");
    }
    if (rows[i - 1].kind == RowKind::kDecode) {
      control_->Violation(name + "a slot samples before its last row");
    }
  }
}

std::unique_ptr<QueuedStep> HostSamplingStep::Queue(
    absl::Span<const StepRow> rows) {
  Begin(StepCall::kQueue);
  absl::MutexLock lock(&mutex_);
  CheckRows(rows);
  auto step = std::make_shared<Queued>();
  step->rows.assign(rows.begin(), rows.end());
  step->done_at =
      Add([this, step]() ABSL_NO_THREAD_SAFETY_ANALYSIS { RunStep(*step); });
  queued_.push_back(step);
  return std::make_unique<HostQueuedStep>(this, std::move(step));
}

void HostSamplingStep::RunStep(Queued& step) {
  SampledRows& results = step.results;
  results.rows.resize(step.rows.size());
  results.device_seconds = options_.device_seconds;
  results.evaluated.resize(sampler_.bins().clusters());
  std::vector<Segment> segments;
  std::vector<size_t> wanted;
  bool unknown = false;
  for (size_t i = 0; i < step.rows.size(); ++i) {
    const StepRow& row = step.rows[i];
    std::optional<int32_t>& last = slots_[row.slot].last_sampled;
    if (IsFirstOfSlot(step.rows, i)) {
      unknown = row.token_id == kLastSampled && !last.has_value();
      if (!unknown) segments.push_back({row.slot, row.position, {}, {}});
    }
    const int32_t token =
        row.token_id == kLastSampled ? last.value_or(-1) : row.token_id;
    if (row.kind == RowKind::kDecode) last.reset();
    if (unknown) {
      results.rows[i].status = UnknownInput();
      continue;
    }
    Segment& segment = segments.back();
    if (HasOutput(row.kind)) {
      segment.outputs.push_back(static_cast<int32_t>(segment.tokens.size()));
      wanted.push_back(i);
    }
    segment.tokens.push_back(token);
  }
  if (segments.empty()) return;
  std::vector<StepSegment> views;
  for (const Segment& segment : segments) {
    views.push_back(
        {segment.slot, segment.position, segment.tokens, segment.outputs});
  }
  const auto distributions = step_->Run(views);
  for (size_t i = 0; i < wanted.size(); ++i) {
    results.rows[wanted[i]] = Report(step.rows[wanted[i]], *distributions[i]);
    for (size_t c = 0; c < results.evaluated.size(); ++c) {
      results.evaluated[c] += distributions[i]->IsEvaluated(c) ? 1 : 0;
    }
  }
}

RowResult HostSamplingStep::Report(const StepRow& row,
                                   NextTokenDistribution& distribution) {
  RowResult result;
  result.status = NotFinite(row.position);
  if (!AreNumbers(distribution)) return result;
  int32_t token = row.score_target;
  if (row.kind == RowKind::kDecode) {
    Slot& slot = slots_[row.slot];
    SampleContext context;
    context.recent_ids = slot.recent_ids;
    context.position = row.position + 1;
    if (context.position < slot.min_position) {
      context.banned_ids = slot.banned_ids;
    }
    const auto sampled = sampler_.Sample(distribution, slot.params, context);
    if (sampled.status() == NothingToSample()) {
      result.status = NothingToSample();
    }
    if (!sampled.ok()) return result;
    token = *sampled;
    slot.last_sampled = token;
    slot.recent_ids.push_back(token);
  }
  const float logprob = LogprobOf(distribution, token);
  if (!IsNumber(logprob)) return result;
  result.status = absl::OkStatus();
  result.token_id = token;
  result.logprob = logprob;
  result.top_logprobs = TopLogprobs(distribution, row.top_logprobs);
  if (row.logprob_ids != nullptr) {
    AppendLogprobs(distribution, *row.logprob_ids, result.top_logprobs);
  }
  return result;
}

SampledRows HostSamplingStep::Collect(const std::shared_ptr<Queued>& step) {
  {
    absl::MutexLock lock(&mutex_);
    if (queued_.empty() || queued_.front() != step) {
      control_->Violation("a step is collected twice or out of order");
      return {};
    }
    queued_.pop_front();
    DoUntil(step->done_at);
  }
  control_->Begin(StepCall::kCollect);
  return std::move(step->results);
}

void HostSamplingStep::Clear(int32_t slot) {
  Begin(StepCall::kClear);
  absl::MutexLock lock(&mutex_);
  Add([this, slot]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    slots_[slot].last_sampled.reset();
    step_->Clear(slot);
  });
}

void HostSamplingStep::Copy(int32_t from, int32_t to) {
  Begin(StepCall::kCopy);
  absl::MutexLock lock(&mutex_);
  Add([this, from, to]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    slots_[to].last_sampled.reset();
    step_->Copy(from, to);
  });
}

std::unique_ptr<StateArrival> HostSamplingStep::Import(
    int32_t slot, std::shared_ptr<const StateImage> image) {
  Begin(StepCall::kImport);
  const absl::Status status = CheckStateImage(*image, identity());
  absl::MutexLock lock(&mutex_);
  Add([this, slot, image, fits = status.ok()]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (!fits) return;
    slots_[slot].last_sampled.reset();
    if (!step_->Import(slot, *image).ok()) {
      control_->Violation("an image of the wrong length");
    }
  });
  return std::make_unique<HostArrival>(control_, status);
}

std::unique_ptr<StateTransfer> HostSamplingStep::Export(int32_t slot,
                                                        int64_t position) {
  Begin(StepCall::kExport);
  auto image = std::make_shared<StateImage>();
  absl::MutexLock lock(&mutex_);
  const int64_t done_at =
      Add([this, image, slot, position]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
        *image = step_->Export(slot, position);
      });
  return std::make_unique<HostTransfer>(this, image, done_at);
}

}  // namespace txl
