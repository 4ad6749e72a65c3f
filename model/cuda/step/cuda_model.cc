#include "model/cuda/step/cuda_model.h"

#include "absl/strings/str_cat.h"
#include "model/base/number_format.h"
#include "model/checkpoint/weights.h"
#include "model/cuda/step/cuda_shape.h"
#include "model/step/model_step.h"

namespace txl::cuda {

RingGeometry MakeRing(const ModelConfig& config, int64_t spare) {
  return CudaRing(ServingRing(config, spare));
}

namespace {

StateIdentity MakeIdentity(const ModelConfig& config,
                           const CudaStepOptions& options) {
  StateIdentity identity = ServingIdentity(config, options.fingerprint);
  identity.row_dtype = FormatName(options.memory);
  identity.kernel = absl::StrCat("native-cuda-absorbed-weights-",
                                 FormatName(options.weights));
  return identity;
}

}  // namespace

template <typename T, typename M>
CudaModel<T, M>::CudaModel(const ModelConfig& config, const Weights& weights,
                           const CudaStepOptions& options, int lanes)
    : config_(config),
      device_(options.device),
      buckets_(StepBuckets(options.max_rows)),
      weights_(UploadWeights<T>(config, weights)),
      arena_(MakeRing(config, options.spare_rows), weights_.shape,
             options.slots, stream_),
      identity_(MakeIdentity(config, options)),
      states_(arena_, identity_, options.device, lanes, stream_),
      products_(stream_, CurrentDevice().processors,
                MostSums(weights_, buckets_, CurrentDevice().processors)),
      embedding_(config_, weights_, buckets_.back(), products_, stream_),
      layers_({config_, weights_, arena_, products_, stream_}, buckets_) {}

template <typename T, typename M>
CudaModel<T, M>::~CudaModel() {
  try {
    stream_.Wait();
  } catch (const DeviceError&) {
  }
}

template <typename T, typename M>
void CudaModel<T, M>::QueueLayers(const StepRows& rows,
                                  const FedTokens& tokens) {
  embedding_.Queue(rows.count, tokens, layers_.hidden(),
                   layers_.narrow_hidden());
  layers_.Queue(rows);
}

template <typename T, typename M>
void CudaModel<T, M>::Clear(int32_t slot) {
  states_.Settle(slot);
  arena_.Clear(slot);
  if (!arena_.ring().zero_start || config_.norm != NormPlacement::kPre) return;
  // The norm of zeros is its shift.
  for (int layer = 0; layer < weights_.shape.layers; ++layer) {
    arena_.FillStart(slot, layer, weights_.layers[layer].ln1.shift.data());
  }
}

template <typename T, typename M>
void CudaModel<T, M>::Copy(int32_t from, int32_t to) {
  states_.Settle(from);
  states_.Settle(to);
  arena_.Copy(from, to);
}

template <typename T, typename M>
std::unique_ptr<Graph> CudaModel<T, M>::Capture(
    absl::FunctionRef<void()> queue) {
  queue();
  stream_.Wait();
  return Graph::Capture(stream_, queue);
}

template class CudaModel<float, float>;
template class CudaModel<float, Bf16>;
template class CudaModel<float, F16>;
template class CudaModel<Bf16, float>;
template class CudaModel<Bf16, Bf16>;
template class CudaModel<Bf16, F16>;
template class CudaModel<F16, float>;
template class CudaModel<F16, Bf16>;
template class CudaModel<F16, F16>;

}  // namespace txl::cuda
