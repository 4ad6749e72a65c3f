#include "model/train/evaluation.h"

#include <ATen/core/grad_mode.h>

#include <cmath>
#include <numbers>
#include <vector>

namespace txl {

double Evaluation::bits() const { return nats / std::numbers::ln2; }
double Evaluation::perplexity() const { return std::exp(nats); }

Evaluation Evaluate(const ReferenceNetwork& network,
                    absl::Span<const int64_t> ids,
                    const EvaluationOptions& options) {
  const at::AutoGradMode gradients(static_cast<bool>(options.learn));
  const std::vector<EvaluationBatch> batches =
      EvaluationStreams(ids, options.shape, options.cut);
  Evaluation result;
  if (batches.empty()) return result;
  const at::Device device = network.weights().embedding[0].w.device();
  SegmentMemory memory = network.InitialMemory(batches[0].inputs.size(0));
  double sum = 0;
  for (size_t i = 0; i < batches.size(); ++i) {
    const EvaluationBatch& batch = batches[i];
    const at::Tensor hidden =
        network.Forward(batch.inputs.to(device), memory).flatten(0, 1);
    const at::Tensor nll =
        network.Nll(hidden, batch.targets.to(device).flatten())
            .to(at::kCPU, at::kDouble)
            .masked_select(batch.counted.flatten());
    sum += nll.sum().item<double>();
    if (options.learn) options.learn(nll.mean());
    result.tokens += batch.counted.sum().item<int64_t>();
    result.nats = sum / static_cast<double>(result.tokens);
    const double share =
        static_cast<double>(i + 1) / static_cast<double>(batches.size());
    if (options.observer && !options.observer(result, share)) break;
  }
  return result;
}

}  // namespace txl
