#include "model/cpu/native_step.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "model/base/number_format.h"
#include "model/base/status_macros.h"
#include "model/checkpoint/weights.h"
#include "model/cpu/attention_form.h"
#include "model/cpu/native_arena.h"
#include "model/cpu/native_layers.h"
#include "model/cpu/native_softmax.h"
#include "model/cpu/native_weights.h"
#include "model/cpu/thread_pool.h"
#include "model/cpu/vector_target.h"
#include "model/step/model_step.h"

namespace txl {
namespace {

RingGeometry MakeRing(const ModelConfig& config, int64_t spare) {
  return NativeRing(ServingRing(config, spare));
}

NativeShape MakeShape(const ModelConfig& config, const NativeFormats& formats) {
  return {config.n_layer,
          config.n_head,
          config.d_head,
          config.d_model,
          formats.memory,
          formats.derived,
          ResolveForm(config, formats)};
}

absl::Status CheckOptions(const ModelConfig& config, const Weights& weights,
                          const NativeStepOptions& options) {
  TXL_RETURN_IF_ERROR(CheckSlots(options.slots, options.spare_rows));
  if (options.max_rows < 1) {
    return absl::InvalidArgumentError("max_rows: must be at least 1");
  }
  if (options.threads < 1) {
    return absl::InvalidArgumentError("threads: must be at least 1");
  }
  if (options.formats.products == Products::kInteger &&
      !AreWholeNumbers(options.formats.weights)) {
    return absl::InvalidArgumentError(
        "formats: integer products need int8 or int4 weights");
  }
  return CheckFloat32OnCpu(weights, config, "the native step");
}

StateIdentity MakeIdentity(const ModelConfig& config,
                           const NativeStepOptions& options) {
  StateIdentity identity = ServingIdentity(config, options.fingerprint);
  const NativeFormats& formats = options.formats;
  const NativeShape shape = MakeShape(config, formats);
  const bool absorbed = shape.form == AttentionForm::kAbsorbed;
  identity.row_dtype = FormatName(formats.memory);
  identity.kernel = absl::StrCat(
      "native-cpu-", FormName(shape.form), "-", VectorBits(), "-weights-",
      FormatName(formats.weights),
      formats.products == Products::kInteger ? "-products-int8" : "",
      "-derived-", FormatName(formats.derived),
      absorbed && shape.integer_attention() ? "-attention-int8" : "");
  return identity;
}

class NativeStep final : public ModelStep {
 public:
  NativeStep(const ModelConfig& config, const Weights& weights,
             const NativeStepOptions& options)
      : config_(config),
        weights_(PackWeights(config, weights, options.formats)),
        arena_(MakeRing(config, options.spare_rows),
               MakeShape(config, options.formats), options.slots),
        identity_(MakeIdentity(config, options)),
        pool_(options.threads),
        layers_(config_, weights_, arena_, options.max_rows, options.threads),
        softmax_(config_, weights_, pool_),
        max_rows_(options.max_rows),
        underived_(options.slots),
        wanted_(options.max_rows * layers_.stride()) {
    tokens_.reserve(options.max_rows);
    ticks_.reserve(options.max_rows);
    runs_.reserve(options.max_rows);
    wanted_rows_.reserve(options.max_rows);
  }

  absl::Span<NextTokenDistribution* const> Run(
      absl::Span<const StepSegment> segments) override;
  void EvaluateClusters(absl::Span<const ClusterOfRow> clusters) override {
    softmax_.EvaluateClusters(clusters);
  }
  void Clear(int32_t slot) override;
  void Copy(int32_t from, int32_t to) override {
    pool_.Run(config_.n_layer,
              [&](int64_t layer, int) { arena_.CopyLayer(from, to, layer); });
    underived_[to] = underived_[from];
  }
  StateImage Export(int32_t slot, int64_t position,
                    int64_t most) const override;
  absl::Status Import(int32_t slot, const StateImage& image) override;
  void Derive(int32_t slot, int64_t rows) override;
  bool derives() const override {
    return arena_.shape().form == AttentionForm::kProjected;
  }
  bool depends_on_no_cut() const override { return true; }
  std::optional<BeatPositions> beats() const override {
    return config_.beat_positions;
  }

  const RingGeometry& ring() const override { return arena_.ring(); }
  const StateIdentity& identity() const override { return identity_; }
  int64_t BytesPerSlot() const override { return arena_.bytes_per_slot(); }

 private:
  // Stored rows [next, end) of a slot whose keys and values are to be derived.
  struct Underived {
    int64_t next = 0;
    int64_t end = 0;
  };

  const ModelConfig config_;
  const NativeWeights weights_;
  NativeArena arena_;
  const StateIdentity identity_;
  mutable ThreadPool pool_;  // Export uses it, too
  NativeLayers layers_;
  NativeSoftmax softmax_;
  const int64_t max_rows_;
  std::vector<Underived> underived_;  // of each slot
  AlignedBuffer<float> wanted_;       // rows whose distribution is wanted
  // What the batch that runs is made of.
  std::vector<int32_t> tokens_, ticks_;
  std::vector<NativeRun> runs_;
  std::vector<int64_t> wanted_rows_;
};

absl::Span<NextTokenDistribution* const> NativeStep::Run(
    absl::Span<const StepSegment> segments) {
  tokens_.clear();
  ticks_.clear();
  runs_.clear();
  wanted_rows_.clear();
  for (const StepSegment& segment : segments) {
    const Underived& left = underived_[segment.slot];
    if (left.next < left.end) Derive(segment.slot, left.end - left.next);
    const int64_t first = static_cast<int64_t>(tokens_.size());
    runs_.push_back({segment.slot, segment.position, first,
                     static_cast<int64_t>(segment.tokens.size())});
    for (const int32_t row : segment.outputs) {
      wanted_rows_.push_back(first + row);
    }
    tokens_.insert(tokens_.end(), segment.tokens.begin(), segment.tokens.end());
    ticks_.insert(ticks_.end(), segment.ticks.begin(), segment.ticks.end());
    ticks_.resize(tokens_.size());
  }
  softmax_.Embed(tokens_, ticks_, layers_.hidden(), layers_.stride());
  layers_.Run(runs_, pool_);
  const int64_t stride = layers_.stride();
  for (size_t i = 0; i < wanted_rows_.size(); ++i) {
    const float* row = layers_.hidden() + wanted_rows_[i] * stride;
    float* out = wanted_.data() + static_cast<int64_t>(i) * stride;
    if (weights_.final_norm.has_value()) {
      NormalizeRow(row, config_.d_model, weights_.final_norm->g.data(),
                   weights_.final_norm->b.data(),
                   static_cast<float>(config_.ln_eps), out);
    } else {
      std::copy_n(row, config_.d_model, out);
    }
  }
  return softmax_.Distributions(
      wanted_.data(), static_cast<int64_t>(wanted_rows_.size()), stride);
}

void NativeStep::Clear(int32_t slot) {
  underived_[slot] = {};
  if (!ring().zero_start) return;  // rows before position 0 are never read
  layers_.WriteStartRows(slot, pool_);
}

StateImage NativeStep::Export(int32_t slot, int64_t position,
                              int64_t most) const {
  StateImage image;
  image.identity = identity_;
  image.position = position;
  image.rows = std::min(ring().RowsBefore(position), most);
  const int64_t row_bytes = arena_.image_row_bytes();
  image.data.resize(config_.n_layer * image.rows * row_bytes);
  pool_.Run(config_.n_layer, [&](int64_t layer, int) {
    uint8_t* to = image.data.data() + layer * image.rows * row_bytes;
    for (int64_t t = position - image.rows; t < position; ++t) {
      arena_.WriteImageRow(slot, layer, t, to);
      to += row_bytes;
    }
  });
  image.Seal();
  return image;
}

absl::Status NativeStep::Import(int32_t slot, const StateImage& image) {
  TXL_RETURN_IF_ERROR(CheckStateImage(image, identity_));
  if (image.position < 0 || image.rows != ring().RowsBefore(image.position)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "state image: ", image.rows, " rows at position ", image.position));
  }
  const int64_t row_bytes = arena_.image_row_bytes();
  const int64_t first = image.position - image.rows;
  pool_.Run(config_.n_layer, [&](int64_t layer, int) {
    const uint8_t* from = image.data.data() + layer * image.rows * row_bytes;
    for (int64_t t = first; t < image.position; ++t) {
      arena_.ReadImageRow(slot, layer, t, from);
      from += row_bytes;
    }
  });
  underived_[slot] = {first, derives() ? image.position : first};
  return absl::OkStatus();
}

void NativeStep::Derive(int32_t slot, int64_t rows) {
  Underived& left = underived_[slot];
  const int64_t end = std::min(left.end, left.next + rows);
  while (left.next < end) {
    const int64_t now = std::min(max_rows_, end - left.next);
    layers_.DeriveStored(slot, left.next, now, pool_);
    left.next += now;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<ModelStep>> CreateNativeStep(
    const ModelConfig& config, const Weights& weights,
    const NativeStepOptions& options) {
  TXL_RETURN_IF_ERROR(CheckOptions(config, weights, options));
  return std::make_unique<NativeStep>(config, weights, options);
}

int64_t NativeStepSlotBytes(const ModelConfig& config, int64_t spare_rows,
                            const NativeFormats& formats) {
  return NativeSlotBytes(MakeRing(config, spare_rows),
                         MakeShape(config, formats));
}

}  // namespace txl
