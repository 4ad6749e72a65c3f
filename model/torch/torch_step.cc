#include "model/torch/torch_step.h"

#include <ATen/Version.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>
#include <torch/version.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "model/checkpoint/weights.h"
#include "model/step/model_step.h"
#include "model/torch/absorbed_attention.h"
#include "model/torch/adaptive_softmax.h"
#include "model/torch/slot_arena.h"

namespace txl {
namespace {

// Rows whose numbers are not finite (or of a step that threw): positions
// [begin, end) of a slot. They must not stay behind when the caller discards
// them, since a masked row still enters a product, with weight zero.
struct SuspectRows {
  int64_t begin = 0;
  int64_t end = 0;
};

std::string KernelName(at::Device device) {
  // The instruction set decides the kernels and with them the last bits.
  return absl::StrCat(
      "torch-", TORCH_VERSION_MAJOR, ".", TORCH_VERSION_MINOR, "-absorbed-",
      device.is_cpu() ? absl::StrCat("cpu-", at::get_cpu_capability())
                      : at::DeviceTypeName(device.type(), /*lower_case=*/true));
}

at::Tensor Norm(const at::Tensor& x, const at::Tensor& g, const at::Tensor& b,
                double eps) {
  return at::layer_norm(x, {x.size(1)}, g, b, eps);
}

at::Tensor Activate(const at::Tensor& x, Activation activation) {
  switch (activation) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return at::relu(x);
    case Activation::kGeluTanh:
      return at::gelu(x, "tanh");
  }
  TORCH_CHECK(false, "activation ", static_cast<int>(activation));
}

// What a cleared slot holds: the row that the model's start memory has.
std::vector<at::Tensor> StartRows(const ModelConfig& config,
                                  const Weights& weights) {
  std::vector<at::Tensor> rows;
  for (const LayerWeights& layer : weights.layers) {
    const at::Tensor zero = at::zeros({config.d_model}, layer.wq.options());
    const bool normalised = config.norm == NormPlacement::kPre &&
                            config.mem_init == MemoryInit::kZeros;
    rows.push_back(normalised ? Norm(zero.unsqueeze(0), layer.ln1_g,
                                     layer.ln1_b, config.ln_eps)
                                    .squeeze(0)
                              : zero);
  }
  return rows;
}

absl::Status CheckOptions(const ModelConfig& config, const Weights& weights,
                          const TorchStepOptions& options) {
  TXL_RETURN_IF_ERROR(CheckSlots(options.slots, options.spare_rows));
  if (options.row_tile < 1) {
    return absl::InvalidArgumentError("row_tile: must be at least 1");
  }
  TXL_RETURN_IF_ERROR(CheckCounts(weights, config));
  const at::ScalarType dtype = weights.layers[0].wq.scalar_type();
  if (dtype != at::kFloat && dtype != at::kDouble) {
    return absl::InvalidArgumentError(
        absl::StrCat("weights: dtype must be float32 or float64, not ",
                     at::toString(dtype)));
  }
  return absl::OkStatus();
}

}  // namespace

struct TorchStep::Impl {
  ModelConfig config;
  Weights weights;
  int64_t row_tile = 0;
  StateIdentity identity;
  std::vector<PositionTable> tables;
  std::unique_ptr<SlotArena> arena;
  std::vector<SuspectRows> suspects;  // per slot
  VocabularyBins bins;
  // What the last Run returned.
  at::Tensor logprobs;
  std::vector<FullDistribution> rows;
  std::vector<NextTokenDistribution*> result;

  // The rows of every layer, on the CPU, that lie at `data`.
  at::Tensor RowsAt(uint8_t* data, int64_t rows) const {
    return at::from_blob(data, {config.n_layer, rows, config.d_model},
                         arena->start_row(0).options().device(at::kCPU));
  }
  // Replaces the slot by the image's rows, which `rows_of` gives.
  absl::Status Fill(
      int32_t slot, const StateImage& image,
      absl::FunctionRef<absl::StatusOr<at::Tensor>(int64_t layer)> rows_of);
  void CheckSegments(absl::Span<const StepSegment> segments) const;
  std::vector<SegmentView> Views(absl::Span<const StepSegment> segments) const;
  void ForgetDiscarded(const StepSegment& segment);
  at::Tensor Layer(int64_t index, const at::Tensor& h,
                   const std::vector<SegmentView>& views);
  at::Tensor FeedForward(const LayerWeights& layer, const at::Tensor& x) const;
  void NoteNonFinite(const at::Tensor& hidden,
                     const std::vector<SegmentView>& views);
};

absl::Status TorchStep::Impl::Fill(
    int32_t slot, const StateImage& image,
    absl::FunctionRef<absl::StatusOr<at::Tensor>(int64_t layer)> rows_of) {
  if (image.position < 0 ||
      image.rows != arena->ring().RowsBefore(image.position)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "state image: ", image.rows, " rows at position ", image.position));
  }
  arena->Clear(slot);
  suspects[slot] = {};
  if (image.rows == 0) return absl::OkStatus();
  for (int64_t layer = 0; layer < config.n_layer; ++layer) {
    TXL_ASSIGN_OR_RETURN(const at::Tensor rows, rows_of(layer));
    arena->Write(layer, slot, image.position - image.rows, rows);
  }
  return absl::OkStatus();
}

void TorchStep::Impl::CheckSegments(
    absl::Span<const StepSegment> segments) const {
  std::vector<bool> used(arena->slots(), false);
  for (const StepSegment& segment : segments) {
    TORCH_CHECK(segment.slot >= 0 && segment.slot < arena->slots(), "slot ",
                segment.slot, " does not exist");
    TORCH_CHECK(!used[segment.slot], "slot ", segment.slot, " named twice");
    used[segment.slot] = true;
    const int64_t count = static_cast<int64_t>(segment.tokens.size());
    TORCH_CHECK(count >= 1 && count <= arena->ring().spare, count,
                " tokens in a segment");
    TORCH_CHECK(segment.position >= 0, "position ", segment.position);
    for (const int32_t token : segment.tokens) {
      TORCH_CHECK(token >= 0 && token < config.vocab_size, "token id ", token,
                  " is not in the vocabulary");
    }
    TORCH_CHECK(
        segment.ticks.empty() || segment.ticks.size() == segment.tokens.size(),
        segment.ticks.size(), " ticks for ", count, " tokens");
    for (const int32_t row : segment.outputs) {
      TORCH_CHECK(row >= 0 && row < count, "output row ", row);
    }
  }
}

std::vector<SegmentView> TorchStep::Impl::Views(
    absl::Span<const StepSegment> segments) const {
  std::vector<SegmentView> views;
  int64_t first_row = 0;
  for (const StepSegment& segment : segments) {
    SegmentView place;
    place.slot = segment.slot;
    place.position = segment.position;
    place.first_row = first_row;
    place.rows = static_cast<int64_t>(segment.tokens.size());
    views.push_back(MakeSegmentView(arena->ring(), place,
                                    tables[0].keys.size(2), tables[0].keys));
    first_row += place.rows;
  }
  return views;
}

void TorchStep::Impl::ForgetDiscarded(const StepSegment& segment) {
  SuspectRows& suspect = suspects[segment.slot];
  const int64_t begin = std::max(suspect.begin, segment.position);
  if (begin < suspect.end) arena->Erase(segment.slot, begin, suspect.end);
  suspect.end = std::min(suspect.end, segment.position);
  // Until the step has gone well, its own rows are suspect too.
  if (suspect.begin >= suspect.end) suspect.begin = segment.position;
  suspect.end = segment.position + static_cast<int64_t>(segment.tokens.size());
}

at::Tensor TorchStep::Impl::FeedForward(const LayerWeights& layer,
                                        const at::Tensor& x) const {
  const at::Tensor inner =
      Activate(TiledLinear(x, layer.ff_w1, layer.ff_b1, row_tile), config.act);
  return Activate(TiledLinear(inner, layer.ff_w2, layer.ff_b2, row_tile),
                  config.ff_out_act);
}

at::Tensor TorchStep::Impl::Layer(int64_t index, const at::Tensor& h,
                                  const std::vector<SegmentView>& views) {
  const LayerWeights& layer = weights.layers[index];
  const bool pre = config.norm == NormPlacement::kPre;
  const double eps = config.ln_eps;
  const at::Tensor x = pre ? Norm(h, layer.ln1_g, layer.ln1_b, eps) : h;
  for (const SegmentView& view : views) {
    arena->Write(index, view.slot, view.position,
                 x.narrow(0, view.first_row, view.rows));
  }
  const AttentionShape shape = {config.n_head, config.d_head, row_tile};
  const at::Tensor attended =
      AbsorbedAttention(shape, layer, tables[index], x, views, {*arena, index})
          .add_(h);
  if (pre) {
    const at::Tensor normed = Norm(attended, layer.ln2_g, layer.ln2_b, eps);
    return FeedForward(layer, normed).add_(attended);
  }
  const at::Tensor normed = Norm(attended, layer.ln1_g, layer.ln1_b, eps);
  return Norm(FeedForward(layer, normed).add_(normed), layer.ln2_g, layer.ln2_b,
              eps);
}

// A row that is not finite in any layer is not finite in the last one either:
// it attends to itself.
void TorchStep::Impl::NoteNonFinite(const at::Tensor& hidden,
                                    const std::vector<SegmentView>& views) {
  const at::Tensor largest =
      hidden.abs().amax(1).to(at::kCPU, at::kDouble).contiguous();
  const double* values = largest.const_data_ptr<double>();
  for (const SegmentView& view : views) {
    SuspectRows& suspect = suspects[view.slot];
    const bool earlier = suspect.begin < view.position;
    SuspectRows now = {view.position, view.position};
    for (int64_t row = view.rows - 1; row >= 0; --row) {
      if (std::isfinite(values[view.first_row + row])) continue;
      now.begin = view.position + row;
      now.end = std::max(now.end, view.position + row + 1);
    }
    if (now.begin == now.end) {
      suspect.end = view.position;  // empty unless `earlier`
    } else {
      suspect = {earlier ? suspect.begin : now.begin, now.end};
    }
  }
}

TorchStep::TorchStep(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TorchStep::~TorchStep() = default;

absl::StatusOr<std::unique_ptr<TorchStep>> TorchStep::Create(
    ModelConfig config, Weights weights, const TorchStepOptions& options) {
  TXL_RETURN_IF_ERROR(CheckOptions(config, weights, options));
  c10::InferenceMode guard;
  auto impl = std::make_unique<Impl>();
  impl->bins = BinsOf(config);
  impl->config = std::move(config);
  impl->weights = std::move(weights);
  impl->row_tile = options.row_tile;
  const at::Tensor& like = impl->weights.layers[0].wq;
  const RingGeometry ring = ServingRing(impl->config, options.spare_rows);
  impl->tables = MakePositionTables(impl->config, impl->weights);
  impl->arena = std::make_unique<SlotArena>(
      ring, options.slots, StartRows(impl->config, impl->weights));
  impl->suspects.resize(options.slots);

  StateIdentity& identity = impl->identity;
  identity = ServingIdentity(impl->config, options.fingerprint);
  identity.row_dtype = like.scalar_type() == at::kDouble ? "f64" : "f32";
  identity.kernel = KernelName(like.device());

  return std::unique_ptr<TorchStep>(new TorchStep(std::move(impl)));
}

at::Tensor TorchStep::LogProbs(absl::Span<const StepSegment> segments) {
  c10::InferenceMode guard;
  Impl& m = *impl_;
  m.CheckSegments(segments);
  std::vector<int32_t> tokens, ticks;
  std::vector<int64_t> wanted;
  for (const StepSegment& segment : segments) {
    for (const int32_t row : segment.outputs) {
      wanted.push_back(static_cast<int64_t>(tokens.size()) + row);
    }
    tokens.insert(tokens.end(), segment.tokens.begin(), segment.tokens.end());
    ticks.insert(ticks.end(), segment.ticks.begin(), segment.ticks.end());
    ticks.resize(tokens.size());
    m.ForgetDiscarded(segment);
  }
  const std::vector<SegmentView> views = m.Views(segments);
  at::Tensor h = EmbedTokens(m.config, m.weights, {tokens, ticks}, m.row_tile);
  for (int64_t layer = 0; layer < m.config.n_layer; ++layer) {
    h = m.Layer(layer, h, views);
  }
  m.NoteNonFinite(h, views);
  if (wanted.empty()) {
    return at::empty({0, m.config.vocab_size}, h.options().device(at::kCPU));
  }
  const at::Tensor rows = at::tensor(wanted, at::kLong).to(h.device());
  at::Tensor out = h.index_select(0, rows);
  if (m.weights.final_g.defined()) {
    out = Norm(out, m.weights.final_g, m.weights.final_b, m.config.ln_eps);
  }
  return FullLogProbs(m.config, m.weights, out, m.row_tile)
      .to(at::kCPU)
      .contiguous();
}

absl::Span<NextTokenDistribution* const> TorchStep::Run(
    absl::Span<const StepSegment> segments) {
  Impl& m = *impl_;
  m.logprobs = LogProbs(segments).to(at::kFloat);
  const float* values = m.logprobs.const_data_ptr<float>();
  const size_t vocabulary = m.config.vocab_size;
  m.rows.clear();
  m.result.clear();
  for (int64_t row = 0; row < m.logprobs.size(0); ++row) {
    m.rows.emplace_back(absl::MakeSpan(values + row * vocabulary, vocabulary),
                        m.bins);
  }
  for (FullDistribution& row : m.rows) m.result.push_back(&row);
  return m.result;
}

void TorchStep::Clear(int32_t slot) {
  c10::InferenceMode guard;
  impl_->arena->Clear(slot);
  impl_->suspects[slot] = {};
}

void TorchStep::Copy(int32_t from, int32_t to) {
  c10::InferenceMode guard;
  impl_->arena->Copy(from, to);
  impl_->suspects[to] = impl_->suspects[from];
}

StateImage TorchStep::Export(int32_t slot, int64_t position,
                             int64_t most) const {
  c10::InferenceMode guard;
  const RingGeometry& ring = impl_->arena->ring();
  StateImage image;
  image.identity = impl_->identity;
  image.position = position;
  image.rows = std::min(ring.RowsBefore(position), most);
  image.data.resize(impl_->config.n_layer * image.rows * impl_->config.d_model *
                    impl_->arena->start_row(0).element_size());
  impl_->arena->Read(slot, position - image.rows,
                     impl_->RowsAt(image.data.data(), image.rows));
  image.Seal();
  return image;
}

absl::Status TorchStep::Import(int32_t slot, const StateImage& image) {
  TXL_RETURN_IF_ERROR(CheckStateImage(image, impl_->identity));
  c10::InferenceMode guard;
  // It is read alone.
  const at::Tensor rows =
      impl_->RowsAt(const_cast<uint8_t*>(image.data.data()), image.rows);
  TORCH_CHECK(rows.nbytes() == image.data.size(), "size of a state image");
  return impl_->Fill(slot, image, [&](int64_t layer) { return rows[layer]; });
}

absl::Status TorchStep::ImportForeign(int32_t slot, const StateImage& image) {
  c10::InferenceMode guard;
  const at::Tensor rows =
      at::empty({image.rows, impl_->config.d_model}, at::kFloat);
  const auto numbers =
      absl::MakeSpan(rows.mutable_data_ptr<float>(), rows.numel());
  return impl_->Fill(slot, image,
                     [&](int64_t layer) -> absl::StatusOr<at::Tensor> {
                       TXL_RETURN_IF_ERROR(WidenLayer(image, layer, numbers));
                       return rows;
                     });
}

const RingGeometry& TorchStep::ring() const { return impl_->arena->ring(); }

const StateIdentity& TorchStep::identity() const { return impl_->identity; }

std::optional<BeatPositions> TorchStep::beats() const {
  return impl_->config.beat_positions;
}

int64_t TorchStep::BytesPerSlot() const {
  const at::Tensor& like = impl_->arena->start_row(0);
  return TorchSlotBytes(impl_->config, ring().spare, like.element_size());
}

int64_t TorchSlotBytes(const ModelConfig& config, int64_t spare_rows,
                       int64_t element_bytes) {
  return config.n_layer * (config.mem_len + spare_rows) * config.d_model *
         element_bytes;
}

}  // namespace txl
