#include "model/cuda/step/cuda_step.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "model/checkpoint/weights.h"
#include "model/cpu/format_names.h"
#include "model/cuda/step/cuda_arena.h"
#include "model/cuda/step/cuda_embedding.h"
#include "model/cuda/step/cuda_layers.h"
#include "model/cuda/step/cuda_products.h"
#include "model/cuda/step/cuda_softmax.h"
#include "model/cuda/step/cuda_weights.h"
#include "model/cuda/step/step_buckets.h"
#include "model/cuda/step/step_input.h"
#include "model/step/serving_state.h"

namespace txl {
namespace cuda {
namespace {

RingGeometry MakeRing(const ModelConfig& config, int64_t spare) {
  return CudaRing(ServingRing(config, spare));
}

absl::Status CheckOptions(const ModelConfig& config, const Weights& weights,
                          const CudaStepOptions& options) {
  if (options.device < 0 || options.device >= DeviceCount()) {
    return absl::InvalidArgumentError(
        absl::StrCat("device: there is none with index ", options.device));
  }
  if (options.slots < 1) {
    return absl::InvalidArgumentError("slots: must be at least 1");
  }
  if (options.spare_rows < 8) {
    return absl::InvalidArgumentError("spare_rows: must be at least 8");
  }
  if (options.max_rows < 1 || options.max_rows > kMostCudaRows) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_rows: must be in [1, ", kMostCudaRows, "]"));
  }
  if (options.weights == NumberFormat::kInt8 ||
      options.memory == NumberFormat::kInt8) {
    return absl::InvalidArgumentError("formats: int8 is none of this device's");
  }
  if (static_cast<int64_t>(weights.layers.size()) != config.n_layer ||
      static_cast<int64_t>(weights.head.size()) != config.n_bins()) {
    return absl::InvalidArgumentError("weights do not fit the config");
  }
  const at::Tensor& like = weights.layers[0].wq;
  if (like.scalar_type() != at::kFloat || !like.device().is_cpu()) {
    return absl::InvalidArgumentError(
        "weights: the CUDA step takes float32 on the CPU");
  }
  return absl::OkStatus();
}

StateIdentity MakeIdentity(const ModelConfig& config,
                           const CudaStepOptions& options) {
  StateIdentity identity = ServingIdentity(config, options.fingerprint);
  identity.row_dtype = FormatName(options.memory);
  identity.kernel = absl::StrCat("native-cuda-absorbed-weights-",
                                 FormatName(options.weights));
  return identity;
}

template <typename T, typename M>
class CudaStep final : public ModelStep {
 public:
  CudaStep(const ModelConfig& config, const Weights& weights,
           const CudaStepOptions& options)
      : config_(config),
        device_(options.device),
        buckets_(StepBuckets(options.max_rows)),
        weights_(UploadWeights<T>(config, weights)),
        arena_(std::make_unique<CudaArena<M>>(
            MakeRing(config, options.spare_rows), weights_.shape, options.slots,
            stream_)),
        identity_(MakeIdentity(config, options)),
        products_(stream_, CurrentDevice().processors,
                  MostSums(weights_, buckets_, CurrentDevice().processors)),
        input_(buckets_.back()),
        embedding_(config_, weights_, buckets_.back(), products_, stream_),
        layers_({config_, weights_, *arena_, products_, stream_}, buckets_),
        softmax_({config_, weights_, products_, stream_}, buckets_.back()) {
    for (const int rows : buckets_) CaptureGraphs(rows);
  }
  ~CudaStep() override {
    // A graph that runs needs its memory.
    try {
      stream_.Wait();
    } catch (const DeviceError&) {
    }
  }

  absl::Span<NextTokenDistribution* const> Run(
      absl::Span<const StepSegment> segments) override;
  void EvaluateClusters(absl::Span<const ClusterOfRow> clusters) override {
    UseDevice(device_);
    softmax_.EvaluateClusters(clusters);
  }
  void Clear(int32_t slot) override;
  void Copy(int32_t from, int32_t to) override {
    UseDevice(device_);
    arena_->Copy(from, to);
  }
  StateImage Export(int32_t slot, int64_t position) const override;
  absl::Status Import(int32_t slot, const StateImage& image) override;

  const RingGeometry& ring() const override { return arena_->ring(); }
  const StateIdentity& identity() const override { return identity_; }
  int64_t BytesPerSlot() const override { return arena_->bytes_per_slot(); }

 private:
  void CaptureGraphs(int rows);
  // Writes the step's rows into input_; the number of them and of wanted ones.
  struct Counts {
    int64_t rows = 0;
    int64_t wanted = 0;
  };
  Counts WriteInput(absl::Span<const StepSegment> segments);

  const ModelConfig config_;
  const int device_;
  const std::vector<int> buckets_;
  Stream stream_;  // of all work
  const CudaWeights<T> weights_;
  const std::unique_ptr<CudaArena<M>> arena_;
  const StateIdentity identity_;
  CudaProducts products_;
  StepInput input_;
  CudaEmbedding<T> embedding_;
  CudaLayers<T, M> layers_;
  CudaSoftmax<T> softmax_;
  // Of each bucket: from tokens to the last layer's rows, and from so many
  // wanted rows to their head's log-probabilities on the host.
  std::vector<std::unique_ptr<Graph>> layer_graphs_, head_graphs_;
};

// What is queued runs once before it is captured: a device may load a kernel
// when it first runs, which a capture does not allow.
template <typename T, typename M>
void CudaStep<T, M>::CaptureGraphs(int rows) {
  const auto queue_layers = [&] {
    input_.QueueCopy(stream_);
    embedding_.Queue(rows, input_.device_tokens(), layers_.hidden(),
                     layers_.narrow_hidden());
    layers_.Queue(input_.Rows(rows));
  };
  const auto queue_head = [&] {
    softmax_.QueueHead(rows, layers_.out(), input_.device_wanted());
  };
  WriteInput({});  // rows that do not exist
  queue_layers();
  queue_head();
  stream_.Wait();
  layer_graphs_.push_back(Graph::Capture(stream_, queue_layers));
  head_graphs_.push_back(Graph::Capture(stream_, queue_head));
}

template <typename T, typename M>
typename CudaStep<T, M>::Counts CudaStep<T, M>::WriteInput(
    absl::Span<const StepSegment> segments) {
  Counts counts;
  for (const StepSegment& segment : segments) {
    for (const int32_t row : segment.outputs) {
      input_.wanted()[counts.wanted++] =
          static_cast<int32_t>(counts.rows) + row;
    }
    for (size_t i = 0; i < segment.tokens.size(); ++i) {
      input_.slots()[counts.rows] = segment.slot;
      input_.positions()[counts.rows] =
          segment.position + static_cast<int64_t>(i);
      input_.tokens()[counts.rows++] = segment.tokens[i];
    }
  }
  // The rest is there for the graphs' shapes.
  for (int64_t r = counts.rows; r < buckets_.back(); ++r) {
    input_.slots()[r] = -1;
    input_.positions()[r] = 0;
    input_.tokens()[r] = 0;
  }
  std::fill(input_.wanted() + counts.wanted, input_.wanted() + buckets_.back(),
            0);
  return counts;
}

template <typename T, typename M>
absl::Span<NextTokenDistribution* const> CudaStep<T, M>::Run(
    absl::Span<const StepSegment> segments) {
  UseDevice(device_);
  const Counts counts = WriteInput(segments);
  layer_graphs_[BucketOf(buckets_, counts.rows)]->Launch(stream_);
  if (counts.wanted > 0) {
    head_graphs_[BucketOf(buckets_, counts.wanted)]->Launch(stream_);
  }
  stream_.Wait();
  return softmax_.Distributions(counts.wanted);
}

template <typename T, typename M>
void CudaStep<T, M>::Clear(int32_t slot) {
  UseDevice(device_);
  arena_->Clear(slot);
  if (!ring().zero_start || config_.norm != NormPlacement::kPre) return;
  // The norm of zeros is its shift.
  for (int layer = 0; layer < weights_.shape.layers; ++layer) {
    arena_->FillStart(slot, layer, weights_.layers[layer].ln1.shift.data());
  }
}

template <typename T, typename M>
StateImage CudaStep<T, M>::Export(int32_t slot, int64_t position) const {
  UseDevice(device_);
  StateImage image;
  image.identity = identity_;
  image.position = position;
  image.rows = std::min(ring().mem_len, position - ring().first_position());
  image.data.resize(config_.n_layer * image.rows * arena_->row_bytes());
  arena_->Read(slot, position - image.rows, position, image.data.data());
  image.Seal();
  return image;
}

template <typename T, typename M>
absl::Status CudaStep<T, M>::Import(int32_t slot, const StateImage& image) {
  TXL_RETURN_IF_ERROR(CheckStateImage(image, identity_));
  if (image.position < 0 ||
      image.rows !=
          std::min(ring().mem_len, image.position - ring().first_position())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "state image: ", image.rows, " rows at position ", image.position));
  }
  UseDevice(device_);
  arena_->Write(slot, image.position - image.rows, image.position,
                image.data.data());
  return absl::OkStatus();
}

template <typename T>
std::unique_ptr<ModelStep> MakeStep(const ModelConfig& config,
                                    const Weights& weights,
                                    const CudaStepOptions& options) {
  switch (options.memory) {
    case NumberFormat::kBF16:
      return std::make_unique<CudaStep<T, Bf16>>(config, weights, options);
    case NumberFormat::kF16:
      return std::make_unique<CudaStep<T, F16>>(config, weights, options);
    default:
      return std::make_unique<CudaStep<T, float>>(config, weights, options);
  }
}

}  // namespace
}  // namespace cuda

absl::StatusOr<std::unique_ptr<ModelStep>> CreateCudaStep(
    const ModelConfig& config, const Weights& weights,
    const CudaStepOptions& options) {
  TXL_RETURN_IF_ERROR(cuda::CheckOptions(config, weights, options));
  cuda::UseDevice(options.device);
  switch (options.weights) {
    case NumberFormat::kBF16:
      return cuda::MakeStep<cuda::Bf16>(config, weights, options);
    case NumberFormat::kF16:
      return cuda::MakeStep<cuda::F16>(config, weights, options);
    default:
      return cuda::MakeStep<float>(config, weights, options);
  }
}

int64_t CudaStepSlotBytes(const ModelConfig& config, int64_t spare_rows,
                          NumberFormat memory) {
  return cuda::CudaSlotBytes(cuda::MakeRing(config, spare_rows),
                             cuda::MakeCudaShape(config), NumberBytes(memory));
}

}  // namespace txl
