#include "model/tool/native_bytes.h"

#include "absl/strings/str_cat.h"
#include "model/cpu/native_weights.h"
#include "model/cpu/panel_product.h"

namespace txl {
namespace {

constexpr int64_t kFloatBytes = sizeof(float);

int64_t BiasBytes(int64_t outputs) {
  return RoundUp(outputs, kPanel) * kFloatBytes;
}

int64_t NormBytes(const ModelConfig& c) {
  return 2 * RoundUp(c.d_model, kPanel) * kFloatBytes;
}

// wk, wv and bv.
int64_t KeyValueBytes(const ModelConfig& c, AttentionForm form, bool has_bias,
                      NumberFormat format) {
  const int64_t width = c.n_head * c.d_head;
  if (form == AttentionForm::kProjected) {
    return PackedMatrix::BytesOf(2 * width, c.d_model, format) +
           (has_bias ? BiasBytes(2 * width) : 0);
  }
  return c.n_head * (PackedMatrix::BytesOf(c.d_model, c.d_head, format) +
                     PackedMatrix::BytesOf(c.d_head, c.d_model, format)) +
         (has_bias ? width * kFloatBytes : 0);
}

// Every layer has the tensors of layer 0.
int64_t LayerBytes(const ModelConfig& c,
                   const std::map<std::string, TensorInfo>& tensors,
                   AttentionForm form, NumberFormat format) {
  const int64_t width = c.n_head * c.d_head;
  const bool has_table = c.pos == PositionKind::kTable;
  int64_t bytes =
      PackedMatrix::BytesOf(width, c.d_model, format) +  // wq
      KeyValueBytes(c, form, tensors.contains("layer.0.bv"), format) +
      PackedMatrix::BytesOf(c.d_model, width, format) +  // wo
      PackedMatrix::BytesOf(c.d_inner, c.d_model, format) +
      PackedMatrix::BytesOf(c.d_model, c.d_inner, format) +
      BiasBytes(c.d_inner) + BiasBytes(c.d_model) +
      (has_table ? 1 : 2) * width * kFloatBytes +  // u, v
      2 * NormBytes(c);
  if (tensors.contains("layer.0.bq")) bytes += BiasBytes(width);
  if (tensors.contains("layer.0.bo")) bytes += BiasBytes(c.d_model);
  return bytes;
}

int64_t BinBytes(const ModelConfig& c, int64_t bin,
                 const std::map<std::string, TensorInfo>& tensors,
                 NumberFormat format) {
  const int64_t words = c.bin_size(bin), width = c.bin_width(bin);
  const int64_t clusters = bin == 0 ? c.n_bins() - 1 : 0;
  int64_t bytes = PackedMatrix::BytesOf(words + clusters, width, format);
  if (c.head_bias || clusters > 0) bytes += BiasBytes(words + clusters);
  if (!c.tie_weight) bytes += PackedMatrix::BytesOf(words, width, format);
  if (tensors.contains(absl::StrCat("emb.", bin, ".proj"))) {
    bytes += PackedMatrix::BytesOf(c.d_model, width, format) +
             PackedMatrix::BytesOf(width, c.d_model, format);
  }
  return bytes;
}

}  // namespace

int64_t NativeWeightBytes(const ModelConfig& config,
                          const std::map<std::string, TensorInfo>& tensors,
                          AttentionForm form, NumberFormat format) {
  int64_t bytes = config.n_layer * LayerBytes(config, tensors, form, format);
  for (int64_t bin = 0; bin < config.n_bins(); ++bin) {
    bytes += BinBytes(config, bin, tensors, BinFormat(format));
  }
  if (config.final_norm) bytes += NormBytes(config);
  return bytes;
}

int64_t NativePositionKeyBytes(const ModelConfig& config,
                               NumberFormat derived) {
  const int64_t distances = config.position_distances();
  int64_t head_bytes = PackedMatrix::BytesOf(
      distances, config.d_head, derived,
      derived == NumberFormat::kInt8 ? Products::kInteger : Products::kFloat);
  if (config.pos == PositionKind::kTable) head_bytes += BiasBytes(distances);
  return config.n_layer * config.n_head * head_bytes;
}

}  // namespace txl
