#include "model/cuda/step/cuda_sampling_step.h"

#include <array>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "model/base/number_format.h"
#include "model/base/status_macros.h"
#include "model/checkpoint/weights.h"
#include "model/cuda/kernels/step_tokens.h"
#include "model/cuda/step/caller_rows.h"
#include "model/cuda/step/cuda_model.h"
#include "model/cuda/step/cuda_sampling.h"
#include "model/cuda/step/cuda_shape.h"
#include "model/cuda/step/slot_records.h"
#include "model/cuda/step/step_input.h"
#include "model/cuda/step/step_results.h"
#include "model/step/model_step.h"

namespace txl {
namespace cuda {
namespace {

constexpr int kStagedRecords = 64;

int PassRowsOf(const ModelConfig& config, const CudaStepOptions& options,
               const CudaSamplingOptions& sampling) {
  return PassRows(StepBuckets(options.max_rows),
                  PassRowBytes(config, SamplingLimits()), sampling.words_bytes);
}

template <typename T, typename M>
class CudaSamplingStep final : public SamplingStep {
 public:
  CudaSamplingStep(const ModelConfig& config, const Weights& weights,
                   const CudaStepOptions& options,
                   const CudaSamplingOptions& sampling);
  ~CudaSamplingStep() override;

  bool CanSample(const SamplingParams& params,
                 int64_t banned_ids) const override {
    return (!params.follow_kinds || kinds_ != nullptr) &&
           SampledOnDevice(params, banned_ids, bins_, records_.slots().limits);
  }
  void Configure(int32_t slot, const SamplingParams& params,
                 const SampleContext& context) override {
    model_->Use();
    records_.Configure(slot, params, context);
  }
  std::unique_ptr<QueuedStep> Queue(absl::Span<const StepRow> rows) override;

  void Clear(int32_t slot) override;
  void Copy(int32_t from, int32_t to) override;
  std::unique_ptr<StateArrival> Import(
      int32_t slot, std::shared_ptr<const StateImage> image) override;
  std::unique_ptr<StateTransfer> Export(int32_t slot,
                                        int64_t position) override {
    model_->Use();
    return model_->states().Export(slot, position);
  }

  const RingGeometry& ring() const override { return model_->arena().ring(); }
  const StateIdentity& identity() const override { return model_->identity(); }
  int64_t BytesPerSlot() const override {
    return model_->arena().bytes_per_slot() + records_.slots().record_bytes();
  }

 private:
  // What a step needs until it is collected.
  struct Place {
    CallerRows rows;
    Event begin, done;
  };
  class Queued final : public QueuedStep {
   public:
    Queued(CudaSamplingStep* step, int buffer) : step_(step), buffer_(buffer) {}
    SampledRows Collect() override { return step_->Collect(buffer_); }

   private:
    CudaSamplingStep* const step_;
    const int buffer_;
  };

  void CaptureGraphs(int rows);
  // All work of a step whose rows are in its place and its input.
  void Launch(int buffer);
  SampledRows Collect(int buffer);

  const std::unique_ptr<CudaModel<T, M>> model_;
  const VocabularyBins bins_;
  const std::shared_ptr<const TokenKinds> kinds_;
  SlotRecords records_;
  StepInput input_;
  StepResults results_;
  Array<int32_t> tokens_;  // that are fed
  CudaSampling<T> sampling_;
  // Each bucket's: from tokens to the last layer's rows, and from so many
  // wanted rows to results, without and with the best and named words.
  std::vector<std::unique_ptr<Graph>> layer_graphs_;
  std::array<std::vector<std::unique_ptr<Graph>>, 2> sampling_graphs_;
  // Steps n and n + kDepth share a place: the former was collected, and so
  // both of its copies are done, before the latter is queued.
  std::array<Place, kDepth> places_;
  int64_t queued_ = 0;
};

// Passes are at their most for the largest bucket.
int64_t MostListEnds(int max_rows, int pass_rows, const VocabularyBins& bins) {
  const int64_t passes = (max_rows + pass_rows - 1) / pass_rows;
  return passes * static_cast<int64_t>(bins.clusters());
}

template <typename T, typename M>
CudaSamplingStep<T, M>::CudaSamplingStep(const ModelConfig& config,
                                         const Weights& weights,
                                         const CudaStepOptions& options,
                                         const CudaSamplingOptions& sampling)
    : model_(std::make_unique<CudaModel<T, M>>(config, weights, options,
                                               kStatesOnTheirWay)),
      bins_(BinsOf(config)),
      kinds_(sampling.kinds),
      records_(options.slots, SamplingLimits(), kStagedRecords,
               model_->stream()),
      input_(model_->max_rows(), kSamplingColumns, kDepth),
      results_(model_->max_rows(),
               MostListEnds(model_->max_rows(),
                            PassRowsOf(config, options, sampling), bins_),
               kDepth),
      tokens_(MemoryKind::kDevice, model_->max_rows()),
      sampling_({model_->weights(), model_->products(), input_, results_,
                 records_.slots(), kinds_.get(), model_->stream()},
                bins_, PassRowsOf(config, options, sampling)) {
  // Rows that do not exist, for the first run of every graph.
  WriteRows({}, model_->max_rows(), 0, input_);
  input_.QueueCopy(0, /*with_named=*/false, model_->stream());
  for (const int rows : model_->buckets()) {
    model_->stream().OverlapKernels(rows <= options.overlapped_rows);
    CaptureGraphs(rows);
  }
  model_->stream().OverlapKernels(false);
}

template <typename T, typename M>
CudaSamplingStep<T, M>::~CudaSamplingStep() {
  // A graph that runs needs its memory.
  try {
    model_->stream().Wait();
  } catch (const DeviceError&) {
  }
}

template <typename T, typename M>
void CudaSamplingStep<T, M>::CaptureGraphs(int rows) {
  layer_graphs_.push_back(model_->Capture([&] {
    TokenArgs tokens;
    tokens.rows = input_.Rows(rows);
    tokens.given = input_.device_column(InputColumn::kToken);
    tokens.follows_sampled = input_.device_column(InputColumn::kFollowsSampled);
    tokens.slots = records_.slots();
    tokens.tokens = tokens_.data();
    tokens.unknown = results_.device().unknown();
    LaunchResolveTokens(model_->stream(), tokens);
    model_->QueueLayers(
        tokens.rows,
        {tokens_.data(), input_.device_column(InputColumn::kTicks)});
  }));
  for (const bool with_top : {false, true}) {
    sampling_graphs_[with_top].push_back(model_->Capture([&] {
      sampling_.Queue(rows, input_.Rows(rows), model_->out(), with_top);
    }));
  }
}

template <typename T, typename M>
std::unique_ptr<QueuedStep> CudaSamplingStep<T, M>::Queue(
    absl::Span<const StepRow> rows) {
  model_->Use();
  Stream& stream = model_->stream();
  for (const StepRow& row : rows) model_->states().Settle(row.slot);
  const int buffer = static_cast<int>(queued_ % kDepth);
  Place& step = places_[buffer];
  step.rows = CountRows(rows);
  WriteRows(step.rows, model_->max_rows(), buffer, input_);
  auto queued = std::make_unique<Queued>(this, buffer);
  try {
    Launch(buffer);
  } catch (...) {
    // Part of the step may be on its way: the next one takes its place only
    // once nothing reads or writes that any more.
    stream.Wait();
    throw;
  }
  ++queued_;
  return queued;
}

template <typename T, typename M>
void CudaSamplingStep<T, M>::Launch(int buffer) {
  Stream& stream = model_->stream();
  Place& step = places_[buffer];
  const std::vector<int>& buckets = model_->buckets();
  const auto rows = static_cast<int64_t>(step.rows.rows.size());
  const bool has_top = step.rows.has_top;
  stream.Record(step.begin);
  input_.QueueCopy(buffer, has_top, stream);
  layer_graphs_[BucketOf(buckets, rows)]->Launch(stream);
  if (step.rows.wanted > 0) {
    sampling_graphs_[has_top][BucketOf(buckets, step.rows.wanted)]->Launch(
        stream);
  }
  results_.QueueCopy(buffer, has_top, stream);
  stream.Record(step.done);
}

template <typename T, typename M>
SampledRows CudaSamplingStep<T, M>::Collect(int buffer) {
  model_->Use();
  const Place& step = places_[buffer];
  step.done.Wait();
  const ResultArrays results = results_.host(buffer);
  SampledRows sampled;
  sampled.rows = ReadRows(step.rows, results);
  sampled.device_seconds = step.done.SecondsSince(step.begin);
  sampled.evaluated = SumListEnds(results, sampling_.Passes(step.rows.wanted),
                                  bins_.clusters());
  return sampled;
}

template <typename T, typename M>
void CudaSamplingStep<T, M>::Clear(int32_t slot) {
  model_->Use();
  model_->Clear(slot);
  records_.ForgetLast(slot);
}

template <typename T, typename M>
void CudaSamplingStep<T, M>::Copy(int32_t from, int32_t to) {
  model_->Use();
  model_->Copy(from, to);
  records_.ForgetLast(to);
}

template <typename T, typename M>
std::unique_ptr<StateArrival> CudaSamplingStep<T, M>::Import(
    int32_t slot, std::shared_ptr<const StateImage> image) {
  model_->Use();
  return model_->states().Import(slot, std::move(image),
                                 [this, slot] { records_.ForgetLast(slot); });
}

}  // namespace
}  // namespace cuda

absl::StatusOr<std::unique_ptr<SamplingStep>> CreateCudaSamplingStep(
    const ModelConfig& config, const Weights& weights,
    const CudaStepOptions& options, const CudaSamplingOptions& sampling) {
  TXL_RETURN_IF_ERROR(cuda::CheckOptions(config, weights, options));
  if (config.n_bins() - 1 > cuda::kMaxSampledClusters) {
    return absl::InvalidArgumentError(
        absl::StrCat("a vocabulary of ", config.n_bins() - 1,
                     " clusters: the device samples from at most ",
                     cuda::kMaxSampledClusters));
  }
  cuda::UseDevice(options.device);
  return cuda::WithFormats(
      options, [&]<typename T, typename M>() -> std::unique_ptr<SamplingStep> {
        return std::make_unique<cuda::CudaSamplingStep<T, M>>(
            config, weights, options, sampling);
      });
}

CudaSamplingBytes CudaSamplingStepBytes(const ModelConfig& config,
                                        const CudaStepOptions& options,
                                        const CudaSamplingOptions& sampling) {
  const cuda::SamplingLimits limits;
  CudaSamplingBytes bytes;
  bytes.slot = cuda::CudaSlotBytes(cuda::MakeRing(config, options.spare_rows),
                                   cuda::MakeCudaShape(config),
                                   NumberBytes(options.memory)) +
               cuda::SamplingSlots{nullptr, limits}.record_bytes();
  bytes.shared =
      cuda::PassRowsOf(config, options, sampling) *
          cuda::PassRowBytes(config, limits) +
      kStatesOnTheirWay *
          cuda::StateLaneBytes(cuda::MakeRing(config, options.spare_rows),
                               cuda::MakeCudaShape(config),
                               NumberBytes(options.memory));
  return bytes;
}

}  // namespace txl
