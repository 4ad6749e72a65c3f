#include "model/checkpoint/weights.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "model/checkpoint/canonical_tensors.h"
#include "model/checkpoint/safetensors.h"

namespace txl {
namespace {

using NamedSlots = std::vector<std::pair<std::string, at::Tensor*>>;

// Every canonical name with the member that holds it.
NamedSlots Slots(Weights& w) {
  NamedSlots slots;
  for (size_t b = 0; b < w.embedding.size(); ++b) {
    const std::string emb = absl::StrCat("emb.", b);
    const std::string head = absl::StrCat("head.", b);
    slots.emplace_back(emb + ".w", &w.embedding[b].w);
    slots.emplace_back(emb + ".proj", &w.embedding[b].proj);
    slots.emplace_back(head + ".w", &w.head[b].w);
    slots.emplace_back(head + ".b", &w.head[b].b);
    slots.emplace_back(head + ".proj", &w.head[b].proj);
  }
  slots.emplace_back("emb.beat", &w.beat);
  slots.emplace_back("emb.bar", &w.bar);
  for (size_t l = 0; l < w.layers.size(); ++l) {
    LayerWeights& layer = w.layers[l];
    const std::pair<const char*, at::Tensor*> parts[] = {
        {"wq", &layer.wq},       {"wk", &layer.wk},
        {"wv", &layer.wv},       {"wr", &layer.wr},
        {"wo", &layer.wo},       {"bq", &layer.bq},
        {"bk", &layer.bk},       {"bv", &layer.bv},
        {"br", &layer.br},       {"bo", &layer.bo},
        {"u", &layer.u},         {"v", &layer.v},
        {"rel_t", &layer.rel_t}, {"rel_s", &layer.rel_s},
        {"ln1.g", &layer.ln1_g}, {"ln1.b", &layer.ln1_b},
        {"ln2.g", &layer.ln2_g}, {"ln2.b", &layer.ln2_b},
        {"ff.w1", &layer.ff_w1}, {"ff.b1", &layer.ff_b1},
        {"ff.w2", &layer.ff_w2}, {"ff.b2", &layer.ff_b2}};
    for (const auto& [name, tensor] : parts) {
      slots.emplace_back(absl::StrCat("layer.", l, ".", name), tensor);
    }
  }
  slots.emplace_back("final.g", &w.final_g);
  slots.emplace_back("final.b", &w.final_b);
  slots.emplace_back("head.cluster.w", &w.cluster_w);
  slots.emplace_back("head.cluster.b", &w.cluster_b);
  slots.emplace_back("pos.inv_freq", &w.inv_freq);
  return slots;
}

Weights EmptyWeights(const ModelConfig& config) {
  Weights weights;
  weights.embedding.resize(config.n_bins());
  weights.head.resize(config.n_bins());
  weights.layers.resize(config.n_layer);
  return weights;
}

at::ScalarType ToScalarType(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return at::kDouble;
    case DType::kF16:
      return at::kHalf;
    case DType::kBF16:
      return at::kBFloat16;
    default:
      return at::kFloat;
  }
}

absl::StatusOr<DType> ToDType(at::ScalarType type) {
  switch (type) {
    case at::kDouble:
      return DType::kF64;
    case at::kFloat:
      return DType::kF32;
    case at::kHalf:
      return DType::kF16;
    case at::kBFloat16:
      return DType::kBF16;
    default:
      return absl::InvalidArgumentError("weights are saved as floats only");
  }
}

// A view of the mapped bytes, which keeps the file open; offsets of a file
// written by others need not be aligned to the element, so such bytes are
// copied first.
at::Tensor View(const std::shared_ptr<const SafetensorsReader>& file,
                const TensorInfo& info) {
  const absl::Span<const uint8_t> bytes = file->Bytes(info);
  auto* data = const_cast<uint8_t*>(bytes.data());
  const at::ScalarType type = ToScalarType(info.dtype);
  if (info.numel() == 0) return at::empty(info.shape, type);
  if (reinterpret_cast<uintptr_t>(data) % DTypeBytes(info.dtype) == 0) {
    return at::from_blob(
        data, info.shape, [file](void*) {}, at::TensorOptions(type));
  }
  const at::Tensor raw =
      at::from_blob(data, {static_cast<int64_t>(bytes.size())}, at::kByte)
          .clone();
  return raw.view(type).view(info.shape);
}

absl::Status NotFinite(const std::string& path, const std::string& name) {
  return absl::InvalidArgumentError(absl::StrCat(
      path, ": tensor ", name, " holds a value that is not finite"));
}

absl::StatusOr<at::Tensor> LoadTensor(
    const std::shared_ptr<const SafetensorsReader>& file,
    const std::string& name, const LoadOptions& options) {
  const SafetensorsReader& reader = *file;
  const TensorInfo& info = reader.tensors().at(name);
  if (!AllFinite(info.dtype, reader.Bytes(info))) {
    return NotFinite(reader.path(), name);
  }
  if (options.mapped && options.device.is_cpu() &&
      ToScalarType(info.dtype) == options.dtype) {
    return View(file, info);
  }
  at::Tensor loaded = at::empty(
      info.shape, at::TensorOptions(options.dtype).device(options.device));
  loaded.copy_(View(file, info));
  const bool narrowed =
      info.dtype == DType::kF64 && options.dtype != at::kDouble;
  if (narrowed && !at::isfinite(loaded).all().item<bool>()) {
    return NotFinite(reader.path(), name);
  }
  return loaded;
}

// A tied tensor that the file holds all the same must say the same.
absl::Status CheckTied(const SafetensorsReader& reader, const std::string& name,
                       const std::string& tied_to) {
  const auto& tensors = reader.tensors();
  const auto own = tensors.find(name);
  if (own == tensors.end()) return absl::OkStatus();
  const auto other = tensors.find(tied_to);
  if (other != tensors.end() && own->second.dtype == other->second.dtype &&
      reader.Bytes(own->second) == reader.Bytes(other->second)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(reader.path(), ": tensor ", name, " differs from ", tied_to,
                   ", to which config.json ties it"));
}

}  // namespace

std::vector<std::pair<std::string, at::Tensor>> Weights::Named() const {
  std::vector<std::pair<std::string, at::Tensor>> named;
  for (const auto& [name, tensor] : Slots(const_cast<Weights&>(*this))) {
    if (tensor->defined()) named.emplace_back(name, *tensor);
  }
  return named;
}

int64_t Weights::Bytes() const {
  std::set<const void*> seen;
  int64_t bytes = 0;
  for (const auto& [name, tensor] : Named()) {
    if (seen.insert(tensor.data_ptr()).second) {
      bytes += static_cast<int64_t>(tensor.nbytes());
    }
  }
  return bytes;
}

absl::StatusOr<Weights> LoadWeights(const ModelConfig& config,
                                    const std::string& path,
                                    const LoadOptions& options) {
  TXL_ASSIGN_OR_RETURN(auto opened, SafetensorsReader::Open(path));
  const std::shared_ptr<const SafetensorsReader> reader = std::move(opened);
  TXL_RETURN_IF_ERROR(CheckCanonicalTensors(config, reader->tensors(), path));
  const auto canonical = CanonicalTensors(config);
  Weights weights = EmptyWeights(config);
  const NamedSlots slots = Slots(weights);
  std::map<std::string, at::Tensor*> slot_of(slots.begin(), slots.end());
  for (const auto& [name, tensor] : slots) {
    const auto it = canonical.find(name);
    if (it != canonical.end() && it->second.presence != Presence::kTied &&
        reader->tensors().contains(name)) {
      TXL_ASSIGN_OR_RETURN(*tensor, LoadTensor(reader, name, options));
    }
  }
  for (const auto& [name, tensor] : canonical) {
    if (tensor.presence != Presence::kTied) continue;
    TXL_RETURN_IF_ERROR(CheckTied(*reader, name, tensor.tied_to));
    *slot_of.at(name) = *slot_of.at(tensor.tied_to);
  }
  return weights;
}

Weights CopyOf(const Weights& weights) {
  Weights copy = weights;
  std::map<const void*, at::Tensor> copies;
  for (const auto& [name, slot] : Slots(copy)) {
    if (!slot->defined()) continue;
    at::Tensor& own = copies[slot->unsafeGetTensorImpl()];
    if (!own.defined()) own = slot->clone();
    *slot = own;
  }
  return copy;
}

Weights RandomWeights(const ModelConfig& config, double stddev, uint64_t seed,
                      const LoadOptions& options) {
  // Drawn on the CPU in f32 whatever the device, so that the seed decides.
  at::Generator generator = at::detail::createCPUGenerator(seed);
  const auto canonical = CanonicalTensors(config);
  const auto target = at::TensorOptions(options.dtype).device(options.device);
  Weights weights = EmptyWeights(config);
  std::map<std::string, at::Tensor> made;
  for (const auto& [name, slot] : Slots(weights)) {
    const auto it = canonical.find(name);
    if (it == canonical.end() || it->second.presence != Presence::kRequired) {
      continue;
    }
    std::vector<int64_t> shape = it->second.shape;
    // A table reaches as far as a query can look.
    if (shape[0] == -1) shape[0] = config.mem_len + 1;
    at::Tensor value = at::zeros(shape, at::kFloat);
    const bool is_gain = name.ends_with(".g");
    const bool is_bias =
        name.ends_with(".b") || name.ends_with(".b1") || name.ends_with(".b2");
    if (is_gain) value.fill_(1);
    if (!is_gain && !is_bias) value.normal_(0, stddev, generator);
    // The row that is not trained (model/reference/adaptive_softmax.h).
    if (name == "emb.beat" || name == "emb.bar") value[0].zero_();
    *slot = value.to(target);
    made[name] = *slot;
  }
  for (const auto& [name, slot] : Slots(weights)) {
    const auto it = canonical.find(name);
    if (it == canonical.end() || it->second.presence != Presence::kTied) {
      continue;
    }
    const auto source = made.find(it->second.tied_to);
    if (source != made.end()) *slot = source->second;
  }
  return weights;
}

absl::Status SaveWeights(const Weights& weights, const ModelConfig& config,
                         const std::string& path, at::ScalarType dtype) {
  TXL_ASSIGN_OR_RETURN(const DType stored, ToDType(dtype));
  const auto canonical = CanonicalTensors(config);
  std::vector<at::Tensor> keep;
  std::map<std::string, TensorBytes> out;
  for (const auto& [name, tensor] : weights.Named()) {
    const auto it = canonical.find(name);
    if (it == canonical.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": tensor ", name, " is not part of the configured model"));
    }
    if (it->second.presence == Presence::kTied) continue;
    keep.push_back(tensor.detach().to(at::kCPU, dtype).contiguous());
    const at::Tensor& data = keep.back();
    const auto bytes = absl::MakeConstSpan(
        static_cast<const uint8_t*>(data.const_data_ptr()), data.nbytes());
    if (!AllFinite(stored, bytes)) return NotFinite(path, name);
    out[name] = {stored, data.sizes().vec(), bytes};
  }
  return WriteSafetensors(path, out, {{"format", "pt"}});
}

absl::Status CheckCounts(const Weights& weights, const ModelConfig& config) {
  if (static_cast<int64_t>(weights.layers.size()) != config.n_layer ||
      static_cast<int64_t>(weights.embedding.size()) != config.n_bins() ||
      static_cast<int64_t>(weights.head.size()) != config.n_bins()) {
    return absl::InvalidArgumentError("weights do not fit the config");
  }
  return absl::OkStatus();
}

absl::Status CheckFloat32OnCpu(const Weights& weights,
                               const ModelConfig& config,
                               absl::string_view step) {
  TXL_RETURN_IF_ERROR(CheckCounts(weights, config));
  const at::Tensor& like = weights.layers[0].wq;
  if (like.scalar_type() != at::kFloat || !like.device().is_cpu()) {
    return absl::InvalidArgumentError(
        absl::StrCat("weights: ", step, " takes float32 on the CPU"));
  }
  return absl::OkStatus();
}

BinOutputs OutputsOfBin(const ModelConfig& config, const Weights& weights,
                        int64_t bin) {
  BinOutputs outputs = {weights.head[bin].w, weights.head[bin].b};
  if (bin > 0 || config.n_bins() == 1) return outputs;
  outputs.words = at::cat({outputs.words, weights.cluster_w});
  const auto or_zeros = [](const at::Tensor& bias, int64_t count) {
    return bias.defined() ? bias : at::zeros({count});
  };
  outputs.bias = at::cat({or_zeros(outputs.bias, config.bin_size(0)),
                          or_zeros(weights.cluster_b, config.n_bins() - 1)});
  return outputs;
}

absl::Status SetTailShare(double share, Weights& weights) {
  if (!(share > 0 && share < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the tail share is ", share, ", must be in (0, 1)"));
  }
  if (!weights.cluster_b.defined()) {
    return absl::InvalidArgumentError(
        "a tail share needs a model with cutoffs");
  }
  const auto words = static_cast<double>(weights.head.front().w.size(0));
  const auto clusters = static_cast<double>(weights.cluster_b.size(0));
  weights.cluster_b.fill_(std::log(share / (1 - share) * words / clusters));
  return absl::OkStatus();
}

}  // namespace txl
