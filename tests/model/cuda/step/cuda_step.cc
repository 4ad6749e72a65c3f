#include "tests/model/cuda/step/cuda_step.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "model/base/number_format.h"
#include "model/base/status_macros.h"
#include "model/checkpoint/weights.h"
#include "model/cuda/step/cuda_model.h"
#include "model/cuda/step/cuda_shape.h"
#include "model/cuda/step/step_input.h"
#include "tests/model/cuda/step/cuda_softmax.h"

namespace txl {
namespace cuda {
namespace {

constexpr int kBuffer = 0;  // of the input: the only one

template <typename T, typename M>
class CudaStep final : public ModelStep {
 public:
  CudaStep(const ModelConfig& config, const Weights& weights,
           const CudaStepOptions& options)
      : model_(std::make_unique<CudaModel<T, M>>(config, weights, options, 1)),
        input_(model_->max_rows(), kPlainColumns, 1),
        softmax_({model_->config(), model_->weights(), model_->products(),
                  model_->stream()},
                 model_->max_rows()) {
    for (const int rows : model_->buckets()) CaptureGraphs(rows);
  }
  ~CudaStep() override {
    // A graph that runs needs its memory.
    try {
      model_->stream().Wait();
    } catch (const DeviceError&) {
    }
  }

  absl::Span<NextTokenDistribution* const> Run(
      absl::Span<const StepSegment> segments) override;
  void EvaluateClusters(absl::Span<const ClusterOfRow> clusters) override {
    model_->Use();
    softmax_.EvaluateClusters(clusters);
  }
  void Clear(int32_t slot) override {
    model_->Use();
    model_->Clear(slot);
  }
  void Copy(int32_t from, int32_t to) override {
    model_->Use();
    model_->Copy(from, to);
  }
  StateImage Export(int32_t slot, int64_t position,
                    int64_t most) const override {
    model_->Use();
    StateImage image = model_->states().Export(slot, position)->Take();
    if (most >= image.rows) return image;
    std::vector<int64_t> newest(most);
    std::iota(newest.begin(), newest.end(), image.rows - most);
    return WithRows(image, newest);
  }
  absl::Status Import(int32_t slot, const StateImage& image) override {
    model_->Use();
    // It is brought before this returns, and not looked at later.
    const std::shared_ptr<const StateImage> borrowed(
        std::shared_ptr<const StateImage>(), &image);
    return model_->states().Import(slot, borrowed)->Bring();
  }

  const RingGeometry& ring() const override { return model_->arena().ring(); }
  const StateIdentity& identity() const override { return model_->identity(); }
  std::optional<BeatPositions> beats() const override {
    return model_->config().beat_positions;
  }
  int64_t BytesPerSlot() const override {
    return model_->arena().bytes_per_slot();
  }

 private:
  void CaptureGraphs(int rows);
  // Writes the step's rows into input_; the number of them and of wanted ones.
  struct Counts {
    int64_t rows = 0;
    int64_t wanted = 0;
  };
  Counts WriteInput(absl::Span<const StepSegment> segments);

  const std::unique_ptr<CudaModel<T, M>> model_;
  StepInput input_;
  CudaSoftmax<T> softmax_;
  // Of each bucket: from tokens to the last layer's rows, and from so many
  // wanted rows to their head's log-probabilities on the host.
  std::vector<std::unique_ptr<Graph>> layer_graphs_, head_graphs_;
};

template <typename T, typename M>
void CudaStep<T, M>::CaptureGraphs(int rows) {
  WriteInput({});  // rows that do not exist
  layer_graphs_.push_back(model_->Capture([&] {
    input_.QueueCopy(kBuffer, /*with_named=*/false, model_->stream());
    model_->QueueLayers(input_.Rows(rows),
                        {input_.device_column(InputColumn::kToken),
                         input_.device_column(InputColumn::kTicks)});
  }));
  head_graphs_.push_back(model_->Capture([&] {
    softmax_.QueueHead(rows, model_->out(),
                       input_.device_column(InputColumn::kWanted));
  }));
}

template <typename T, typename M>
typename CudaStep<T, M>::Counts CudaStep<T, M>::WriteInput(
    absl::Span<const StepSegment> segments) {
  int64_t* const positions = input_.positions(kBuffer);
  int32_t* const slots = input_.column(InputColumn::kSlot, kBuffer);
  int32_t* const tokens = input_.column(InputColumn::kToken, kBuffer);
  int32_t* const ticks = input_.column(InputColumn::kTicks, kBuffer);
  int32_t* const wanted = input_.column(InputColumn::kWanted, kBuffer);
  Counts counts;
  for (const StepSegment& segment : segments) {
    for (const int32_t row : segment.outputs) {
      wanted[counts.wanted++] = static_cast<int32_t>(counts.rows) + row;
    }
    for (size_t i = 0; i < segment.tokens.size(); ++i) {
      slots[counts.rows] = segment.slot;
      positions[counts.rows] = segment.position + static_cast<int64_t>(i);
      ticks[counts.rows] = segment.ticks.empty() ? 0 : segment.ticks[i];
      tokens[counts.rows++] = segment.tokens[i];
    }
  }
  // The rest is there for the graphs' shapes.
  const int64_t size = model_->max_rows();
  std::fill(slots + counts.rows, slots + size, -1);
  std::fill(positions + counts.rows, positions + size, 0);
  std::fill(tokens + counts.rows, tokens + size, 0);
  std::fill(ticks + counts.rows, ticks + size, 0);
  std::fill(wanted + counts.wanted, wanted + size, 0);
  return counts;
}

template <typename T, typename M>
absl::Span<NextTokenDistribution* const> CudaStep<T, M>::Run(
    absl::Span<const StepSegment> segments) {
  model_->Use();
  for (const StepSegment& segment : segments) {
    model_->states().Settle(segment.slot);
  }
  const Counts counts = WriteInput(segments);
  Stream& stream = model_->stream();
  const std::vector<int>& buckets = model_->buckets();
  layer_graphs_[BucketOf(buckets, counts.rows)]->Launch(stream);
  if (counts.wanted > 0) {
    head_graphs_[BucketOf(buckets, counts.wanted)]->Launch(stream);
  }
  stream.Wait();
  return softmax_.Distributions(counts.wanted);
}

}  // namespace
}  // namespace cuda

absl::StatusOr<std::unique_ptr<ModelStep>> CreateCudaStep(
    const ModelConfig& config, const Weights& weights,
    const CudaStepOptions& options) {
  TXL_RETURN_IF_ERROR(cuda::CheckOptions(config, weights, options));
  cuda::UseDevice(options.device);
  return cuda::WithFormats(
      options, [&]<typename T, typename M>() -> std::unique_ptr<ModelStep> {
        return std::make_unique<cuda::CudaStep<T, M>>(config, weights, options);
      });
}

int64_t CudaStepSlotBytes(const ModelConfig& config, int64_t spare_rows,
                          NumberFormat memory) {
  return cuda::CudaSlotBytes(cuda::MakeRing(config, spare_rows),
                             cuda::MakeCudaShape(config), NumberBytes(memory));
}

}  // namespace txl
