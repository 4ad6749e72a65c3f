#include "model/cpu/native_weights.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>

#include "model/checkpoint/weights.h"
#include "model/reference/attention.h"

namespace txl {
namespace {

// `columns` numbers, zeros behind the tensor's own.
AlignedBuffer<float> Padded(const at::Tensor& t, int64_t columns) {
  AlignedBuffer<float> out(columns);
  const at::Tensor flat = t.contiguous().view({-1});
  std::copy_n(flat.const_data_ptr<float>(), flat.numel(), out.data());
  return out;
}

AlignedBuffer<float> PaddedBias(const at::Tensor& t, int64_t outputs) {
  if (!t.defined()) return {};
  return Padded(t, RoundUp(outputs, kPanel));
}

// A matrix [outputs, inputs].
PackedMatrix Pack(const at::Tensor& t, NumberFormat format,
                  Products products = Products::kFloat) {
  if (!t.defined()) return {};
  const at::Tensor rows = t.contiguous();
  return PackedMatrix(rows.const_data_ptr<float>(), rows.size(0), rows.size(1),
                      format, products);
}

PackedMatrix PackWeight(const at::Tensor& t, const NativeFormats& formats) {
  return Pack(t, formats.weights, formats.products);
}

NativeNorm PackNorm(const at::Tensor& g, const at::Tensor& b) {
  const int64_t columns = RoundUp(g.numel(), kPanel);
  return {Padded(g, columns), Padded(b, columns)};
}

// Biases of keys and values as one; the one on keys drops out of the softmax.
AlignedBuffer<float> PackKeyValueBias(const at::Tensor& bv, int64_t width) {
  if (!bv.defined()) return {};
  return PaddedBias(at::cat({at::zeros({width}), bv}), 2 * width);
}

// keys [columns, H, D] by ascending distance.
void PackPositions(const at::Tensor& keys, const at::Tensor& bias,
                   NumberFormat format, NativeLayer& out) {
  const int64_t columns = keys.size(0);
  const int64_t padded = RoundUp(columns, kPanel);
  for (int64_t head = 0; head < keys.size(1); ++head) {
    at::Tensor turned = at::zeros({padded, keys.size(2)});
    turned.narrow(0, padded - columns, columns)
        .copy_(keys.select(1, head).flip(0));
    out.position_keys.push_back(Pack(
        turned, format,
        format == NumberFormat::kInt8 ? Products::kInteger : Products::kFloat));
  }
  if (!bias.defined()) return;
  at::Tensor turned = at::zeros({keys.size(1), padded});
  turned.narrow(1, padded - columns, columns).copy_(bias.t().flip(1));
  out.position_bias = Padded(turned, turned.numel());
}

void PackProjected(const LayerWeights& layer, int64_t width,
                   const NativeFormats& formats, NativeLayer& out) {
  out.wkv = PackWeight(at::cat({layer.wk, layer.wv}), formats);
  out.bkv = PackKeyValueBias(layer.bv, width);
}

void PackAbsorbed(const ModelConfig& config, const LayerWeights& layer,
                  NumberFormat format, NativeLayer& out) {
  for (int64_t head = 0; head < config.n_head; ++head) {
    const int64_t first = head * config.d_head;
    out.absorbed_keys.push_back(
        Pack(layer.wk.narrow(0, first, config.d_head).t(), format));
    out.absorbed_values.push_back(
        Pack(layer.wv.narrow(0, first, config.d_head), format));
  }
  if (layer.bv.defined()) {
    out.value_bias = Padded(layer.bv, config.n_head * config.d_head);
  }
}

NativeLayer PackLayer(const ModelConfig& config, const LayerWeights& layer,
                      const at::Tensor& encoding,
                      const NativeFormats& formats) {
  const int64_t width = config.n_head * config.d_head;
  NativeLayer out;
  out.wq = PackWeight(layer.wq, formats);
  out.bq = PaddedBias(layer.bq, width);
  if (ResolveForm(config, formats) == AttentionForm::kAbsorbed) {
    PackAbsorbed(config, layer, formats.weights, out);
  } else {
    PackProjected(layer, width, formats, out);
  }
  out.wo = PackWeight(layer.wo, formats);
  out.bo = PaddedBias(layer.bo, config.d_model);
  out.u = Padded(layer.u, width);
  if (config.pos == PositionKind::kTable) {
    const int64_t count = config.position_distances();
    PackPositions(TableRows(config, layer.rel_t, count),
                  TableRows(config, layer.rel_s, count), formats.derived, out);
  } else {
    out.v = Padded(layer.v, width);
    const at::Tensor keys =
        at::mm(encoding, layer.wr.to(at::kDouble).t()).to(at::kFloat);
    PackPositions(keys.view({-1, config.n_head, config.d_head}), {},
                  formats.derived, out);
  }
  out.ln1 = PackNorm(layer.ln1_g, layer.ln1_b);
  out.ln2 = PackNorm(layer.ln2_g, layer.ln2_b);
  out.ff_w1 = PackWeight(layer.ff_w1, formats);
  out.ff_b1 = PaddedBias(layer.ff_b1, config.d_inner);
  out.ff_w2 = PackWeight(layer.ff_w2, formats);
  out.ff_b2 = PaddedBias(layer.ff_b2, config.d_model);
  return out;
}

NativeBin PackBin(const ModelConfig& config, const Weights& weights,
                  int64_t bin, NativeFormats formats) {
  formats.weights = BinFormat(formats.weights);
  const HeadBin& head = weights.head[bin];
  const EmbeddingBin& embedding = weights.embedding[bin];
  NativeBin out;
  const auto [words, bias] = OutputsOfBin(config, weights, bin);
  out.words = PackWeight(words, formats);
  out.bias = PaddedBias(bias, words.size(0));
  if (head.proj.defined()) {
    out.out_proj = PackWeight(head.proj.t(), formats);
  }
  out.in_proj = PackWeight(embedding.proj, formats);
  if (!embedding.w.is_alias_of(head.w)) {
    out.embedding = Pack(embedding.w, formats.weights);
  }
  return out;
}

// A matrix as it is read back once it is packed.
at::Tensor Rounded(const at::Tensor& t, NumberFormat format) {
  const PackedMatrix packed = Pack(t, format);
  at::Tensor out = at::empty({packed.outputs(), packed.inputs()});
  for (int64_t n = 0; n < packed.outputs(); ++n) {
    packed.CopyRow(n, out.mutable_data_ptr<float>() + n * packed.inputs());
  }
  return out;
}

// Keys that are packed head by head and turned.
at::Tensor RoundedByHead(const ModelConfig& config, const at::Tensor& keys,
                         NumberFormat format) {
  std::vector<at::Tensor> heads;
  for (int64_t head = 0; head < config.n_head; ++head) {
    const at::Tensor own = keys.narrow(0, head * config.d_head, config.d_head);
    heads.push_back(Rounded(own.t(), format).t());
  }
  return at::cat(heads);
}

}  // namespace

AttentionForm ResolveForm(const ModelConfig& config,
                          const NativeFormats& formats) {
  if (formats.form.has_value()) return *formats.form;
  return ChooseForm({config.n_layer, config.mem_len, config.n_head,
                     config.d_head, config.d_model, formats.memory,
                     formats.derived});
}

NativeWeights PackWeights(const ModelConfig& config, const Weights& weights,
                          const NativeFormats& formats) {
  c10::InferenceMode guard;
  NativeWeights out;
  out.distances = config.position_distances();
  at::Tensor encoding;
  if (config.pos != PositionKind::kTable) {
    encoding = PositionEncoding(config, weights, out.distances).to(at::kDouble);
  }
  out.layers.resize(weights.layers.size());
  out.bins.resize(config.n_bins());
  const int64_t layers = std::ssize(out.layers);
  at::parallel_for(
      0, layers + config.n_bins(), 1, [&](int64_t begin, int64_t end) {
        c10::InferenceMode own;  // each thread has one
        for (int64_t i = begin; i < end; ++i) {
          if (i < layers) {
            out.layers[i] =
                PackLayer(config, weights.layers[i], encoding, formats);
          } else {
            out.bins[i - layers] =
                PackBin(config, weights, i - layers, formats);
          }
        }
      });
  if (weights.beat.defined()) {
    out.beat = Padded(weights.beat, weights.beat.numel());
    out.bar = Padded(weights.bar, weights.bar.numel());
  }
  if (weights.final_g.defined()) {
    out.final_norm = PackNorm(weights.final_g, weights.final_b);
  }
  return out;
}

Weights RoundedWeights(const ModelConfig& config, const Weights& weights,
                       const NativeFormats& formats) {
  const NumberFormat format = formats.weights;
  if (format != NumberFormat::kInt4) return weights;
  c10::InferenceMode guard;
  const bool absorbed =
      ResolveForm(config, formats) == AttentionForm::kAbsorbed;
  Weights out = weights;
  for (LayerWeights& layer : out.layers) {
    layer.wk = absorbed ? RoundedByHead(config, layer.wk, format)
                        : Rounded(layer.wk, format);
    for (at::Tensor* matrix :
         {&layer.wq, &layer.wv, &layer.wo, &layer.ff_w1, &layer.ff_w2}) {
      *matrix = Rounded(*matrix, format);
    }
  }
  return out;
}

}  // namespace txl
