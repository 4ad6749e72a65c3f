#include "model/tool/serving_evaluation.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "model/cpu/native_step.h"
#include "model/step/model_step.h"
#include "model/torch/torch_step.h"

namespace txl {
namespace {

// Rows of one step. More would not make a product faster, and every row brings
// a whole head's probabilities.
constexpr int64_t kStepRows = 512;

// A stream's tokens of one batch that count; padding only follows them.
struct StreamTokens {
  std::vector<int32_t> inputs;
  std::vector<int32_t> targets;
  std::vector<int32_t> ticks;  // of the inputs; zeros where none are counted
};

std::vector<StreamTokens> CountedTokens(const EvaluationBatch& batch) {
  const auto inputs = batch.inputs.accessor<int64_t, 2>();
  const auto targets = batch.targets.accessor<int64_t, 2>();
  const auto counted = batch.counted.accessor<bool, 2>();
  const at::Tensor all_ticks =
      batch.ticks.defined() ? batch.ticks : at::zeros_like(batch.inputs);
  const auto ticks = all_ticks.accessor<int64_t, 2>();
  std::vector<StreamTokens> streams(inputs.size(0));
  for (int64_t stream = 0; stream < inputs.size(0); ++stream) {
    for (int64_t i = 0; i < inputs.size(1) && counted[stream][i]; ++i) {
      streams[stream].inputs.push_back(static_cast<int32_t>(inputs[stream][i]));
      streams[stream].targets.push_back(
          static_cast<int32_t>(targets[stream][i]));
      streams[stream].ticks.push_back(static_cast<int32_t>(ticks[stream][i]));
    }
  }
  return streams;
}

// Clusters that hold the rows' targets.
std::vector<ClusterOfRow> TargetClusters(absl::Span<const int32_t> targets,
                                         const VocabularyBins& bins) {
  std::vector<ClusterOfRow> clusters;
  for (size_t row = 0; row < targets.size(); ++row) {
    const size_t bin = bins.BinOf(targets[row]);
    if (bin > 0) clusters.push_back({static_cast<int64_t>(row), bin - 1});
  }
  return clusters;
}

// Tokens [begin, begin + rows) of every stream of a batch that begins at
// `position` of each.
struct StepCut {
  int64_t position = 0;
  int64_t begin = 0;
  int64_t rows = 0;
};

// Feeds one cut; returns the sum of -log P(target).
double StepNats(ModelStep& step, absl::Span<const StreamTokens> streams,
                const StepCut& cut) {
  std::vector<int32_t> outputs(cut.rows);
  std::iota(outputs.begin(), outputs.end(), 0);
  std::vector<StepSegment> segments;
  std::vector<int32_t> targets;
  for (size_t slot = 0; slot < streams.size(); ++slot) {
    const auto cut_of = [&](const std::vector<int32_t>& all) {
      return absl::MakeConstSpan(all).subspan(
          std::min<size_t>(cut.begin, all.size()), cut.rows);
    };
    const auto tokens = cut_of(streams[slot].inputs);
    if (tokens.empty()) continue;
    segments.push_back({static_cast<int32_t>(slot), cut.position + cut.begin,
                        tokens,
                        absl::MakeConstSpan(outputs).first(tokens.size()),
                        cut_of(streams[slot].ticks)});
    const auto first = streams[slot].targets.begin() + cut.begin;
    targets.insert(targets.end(), first,
                   first + static_cast<int64_t>(tokens.size()));
  }
  if (segments.empty()) return 0;
  const auto rows = step.Run(segments);
  step.EvaluateClusters(TargetClusters(targets, rows[0]->bins()));
  double nats = 0;
  for (size_t i = 0; i < targets.size(); ++i) {
    nats -= static_cast<double>(LogprobOf(*rows[i], targets[i]));
  }
  return nats;
}

}  // namespace

int64_t RowsPerStream(const StreamShape& shape) {
  return std::clamp<int64_t>(kStepRows / shape.streams, 1, shape.segment);
}

Evaluation EvaluateStep(ModelStep& step, absl::Span<const int64_t> ids,
                        const EvaluationOptions& options,
                        int64_t rows_per_stream) {
  const at::NoGradGuard no_grad;
  const std::vector<EvaluationBatch> batches =
      EvaluationStreams(ids, options.shape, options.cut, step.beats());
  Evaluation result;
  if (batches.empty()) return result;
  for (int32_t slot = 0; slot < batches[0].inputs.size(0); ++slot) {
    step.Clear(slot);
  }
  double sum = 0;
  int64_t position = 0;
  for (size_t i = 0; i < batches.size(); ++i) {
    const std::vector<StreamTokens> streams = CountedTokens(batches[i]);
    const int64_t length = batches[i].inputs.size(1);
    for (int64_t begin = 0; begin < length; begin += rows_per_stream) {
      const int64_t rows = std::min(rows_per_stream, length - begin);
      sum += StepNats(step, streams, {position, begin, rows});
    }
    position += length;
    for (const StreamTokens& stream : streams) {
      result.tokens += static_cast<int64_t>(stream.targets.size());
    }
    result.nats = sum / static_cast<double>(result.tokens);
    const double share =
        static_cast<double>(i + 1) / static_cast<double>(batches.size());
    if (options.observer && !options.observer(result, share)) break;
  }
  return result;
}

absl::StatusOr<std::unique_ptr<ModelStep>> CreateServingStep(
    const ModelConfig& config, Weights weights,
    const ServingStepOptions& options) {
  const at::Tensor& like = weights.layers.at(0).wq;
  const int64_t rows = RowsPerStream(options.shape);
  if (like.is_cpu() && like.scalar_type() == at::kFloat) {
    NativeStepOptions native;
    native.slots = options.shape.streams;
    native.spare_rows = std::max(native.spare_rows, rows);
    native.max_rows = options.shape.streams * rows;
    native.threads = options.threads;
    native.formats = options.formats;
    return CreateNativeStep(config, weights, native);
  }
  TorchStepOptions torch;
  torch.slots = options.shape.streams;
  torch.spare_rows = std::max(torch.spare_rows, rows);
  return TorchStep::Create(config, std::move(weights), torch);
}

}  // namespace txl
