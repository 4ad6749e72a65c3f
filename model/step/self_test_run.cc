#include "model/step/self_test_run.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"

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
  SamplingRow RowOf(size_t index, int64_t row) const;
  void Collect();
  absl::Status Import(size_t index);

  SamplingStep& step_;
  const absl::Span<const SelfTestSession> sessions_;
  std::vector<SelfTestTrace> traces_;
  std::vector<std::vector<SelfTestShare>> queued_;  // and not collected
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
  trace.tokens.resize(session.rows(), kLastSampledToken);
  trace.rows.resize(session.rows());
  return absl::OkStatus();
}

SamplingRow Run::RowOf(size_t index, int64_t row) const {
  const SelfTestSession& session = sessions_[index];
  const auto scored = static_cast<int64_t>(session.targets.size());
  SamplingRow out;
  out.slot = session.slot;
  out.position = traces_[index].position + row;
  out.token = traces_[index].tokens[row];
  out.output = row < scored ? RowOutput::kScore : RowOutput::kSample;
  if (row < scored) out.target = session.targets[row];
  out.top_logprobs = kSelfTestAlternatives;
  return out;
}

void Run::Queue(absl::Span<const SelfTestShare> shares) {
  if (queued_.size() == SamplingStep::kDepth) Collect();
  std::vector<SamplingRow> rows;
  for (const SelfTestShare& share : shares) {
    for (int64_t i = 0; i < share.rows; ++i) {
      rows.push_back(RowOf(share.session, share.first + i));
    }
  }
  step_.Queue(rows);
  queued_.emplace_back(shares.begin(), shares.end());
}

void Run::Collect() {
  const std::vector<SelfTestShare> shares = std::move(queued_.front());
  queued_.erase(queued_.begin());
  SampledRows results = step_.Collect();
  size_t next = 0;
  for (const SelfTestShare& share : shares) {
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
    trace.tokens[row] = trace.rows[row - 1].token;
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

}  // namespace txl
