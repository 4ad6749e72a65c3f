#include "model/torch/torch_model_step.h"

#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

#include "model/torch/torch_step.h"

namespace txl {
namespace {

class TorchModelStep final : public ModelStep {
 public:
  TorchModelStep(std::unique_ptr<TorchStep> step, VocabularyBins bins)
      : step_(std::move(step)), bins_(std::move(bins)) {}

  absl::Span<NextTokenDistribution* const> Run(
      absl::Span<const StepSegment> segments) override {
    logprobs_ = step_->Run(segments).to(at::kFloat);
    const float* values = logprobs_.const_data_ptr<float>();
    const size_t vocabulary = static_cast<size_t>(logprobs_.size(1));
    rows_.clear();
    result_.clear();
    for (int64_t row = 0; row < logprobs_.size(0); ++row) {
      rows_.emplace_back(absl::MakeSpan(values + row * vocabulary, vocabulary),
                         bins_);
    }
    for (FullDistribution& row : rows_) result_.push_back(&row);
    return result_;
  }
  void Clear(int32_t slot) override { step_->Clear(slot); }
  void Copy(int32_t from, int32_t to) override { step_->Copy(from, to); }
  StateImage Export(int32_t slot, int64_t position) const override {
    return step_->Export(slot, position);
  }
  absl::Status Import(int32_t slot, const StateImage& image) override {
    return step_->Import(slot, image);
  }
  const RingGeometry& ring() const override { return step_->ring(); }
  const StateIdentity& identity() const override { return step_->identity(); }
  int64_t BytesPerSlot() const override { return step_->BytesPerSlot(); }

 private:
  const std::unique_ptr<TorchStep> step_;
  const VocabularyBins bins_;
  // What the last Run returned.
  at::Tensor logprobs_;
  std::vector<FullDistribution> rows_;
  std::vector<NextTokenDistribution*> result_;
};

}  // namespace

std::unique_ptr<ModelStep> AsModelStep(std::unique_ptr<TorchStep> step,
                                       VocabularyBins bins) {
  return std::make_unique<TorchModelStep>(std::move(step), std::move(bins));
}

}  // namespace txl
