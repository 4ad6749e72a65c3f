#include "model/checkpoint/canonical_tensors.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "model/base/status_macros.h"

namespace txl {
namespace {

using TensorMap = std::map<std::string, CanonicalTensor>;

std::string ShapeText(const std::vector<int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

bool ShapeFits(const std::vector<int64_t>& actual,
               const std::vector<int64_t>& expected) {
  if (actual.size() != expected.size()) return false;
  for (size_t i = 0; i < actual.size(); ++i) {
    const bool any = expected[i] == -1 && actual[i] >= 1;
    if (!any && actual[i] != expected[i]) return false;
  }
  return true;
}

void AddLayer(const ModelConfig& c, const std::string& prefix, TensorMap& out) {
  const int64_t heads_width = c.n_head * c.d_head;
  for (const char* name : {"wq", "wk", "wv"}) {
    out[prefix + name] = {{heads_width, c.d_model}, Presence::kRequired, ""};
  }
  out[prefix + "wo"] = {{c.d_model, heads_width}, Presence::kRequired, ""};
  for (const char* name : {"bq", "bk", "bv"}) {
    out[prefix + name] = {{heads_width}, Presence::kOptional, ""};
  }
  out[prefix + "bo"] = {{c.d_model}, Presence::kOptional, ""};
  out[prefix + "u"] = {{c.n_head, c.d_head}, Presence::kRequired, ""};
  if (c.pos == PositionKind::kTable) {
    out[prefix + "rel_t"] = {{-1, c.n_head, c.d_head}, Presence::kRequired, ""};
    out[prefix + "rel_s"] = {{-1, c.n_head}, Presence::kRequired, ""};
  } else {
    out[prefix + "wr"] = {{heads_width, c.d_model}, Presence::kRequired, ""};
    out[prefix + "br"] = {{heads_width}, Presence::kOptional, ""};
    out[prefix + "v"] = {{c.n_head, c.d_head}, Presence::kRequired, ""};
  }
  for (const char* name : {"ln1.g", "ln1.b", "ln2.g", "ln2.b", "ff.b2"}) {
    out[prefix + name] = {{c.d_model}, Presence::kRequired, ""};
  }
  out[prefix + "ff.w1"] = {{c.d_inner, c.d_model}, Presence::kRequired, ""};
  out[prefix + "ff.b1"] = {{c.d_inner}, Presence::kRequired, ""};
  out[prefix + "ff.w2"] = {{c.d_model, c.d_inner}, Presence::kRequired, ""};
}

// Whether bin `bin` has projections. A bin of another width than the model's
// must have them. Of equal width, emb_proj_bin0 decides: with div_val 1 for all
// bins, which share one table; otherwise for bin 0, and the file for the rest.
enum class Projection { kNo, kMaybe, kYes };
Projection BinProjection(const ModelConfig& c, int64_t bin) {
  if (c.bin_width(bin) != c.d_model) return Projection::kYes;
  if (!c.emb_proj_bin0.has_value()) return Projection::kMaybe;
  if (bin > 0 && c.div_val > 1) return Projection::kMaybe;
  return *c.emb_proj_bin0 ? Projection::kYes : Projection::kNo;
}

bool IsTiedProjection(const ModelConfig& c, int64_t bin) {
  return !c.tie_projs.empty() && c.tie_projs[bin];
}

void AddBin(const ModelConfig& c, int64_t bin, TensorMap& out) {
  const std::string emb = absl::StrCat("emb.", bin);
  const std::string head = absl::StrCat("head.", bin);
  const std::vector<int64_t> table = {c.bin_size(bin), c.bin_width(bin)};
  out[emb + ".w"] = {table, Presence::kRequired, ""};
  out[head + ".w"] = c.tie_weight
                         ? CanonicalTensor{table, Presence::kTied, emb + ".w"}
                         : CanonicalTensor{table, Presence::kRequired, ""};
  if (c.head_bias) {
    out[head + ".b"] = {{c.bin_size(bin)}, Presence::kRequired, ""};
  }
  const Projection projection = BinProjection(c, bin);
  if (projection == Projection::kNo) return;
  const CanonicalTensor own = {{c.d_model, c.bin_width(bin)},
                               projection == Projection::kYes
                                   ? Presence::kRequired
                                   : Presence::kOptional,
                               ""};
  out[emb + ".proj"] = own;
  out[head + ".proj"] =
      IsTiedProjection(c, bin)
          ? CanonicalTensor{own.shape, Presence::kTied, emb + ".proj"}
          : own;
}

// A bin is projected at its input and its output or at neither: a projection
// left out at one end would be another model, not an error in the sums.
absl::Status CheckProjectionPairs(
    const ModelConfig& config, const std::map<std::string, TensorInfo>& tensors,
    const std::string& path) {
  for (int64_t bin = 0; bin < config.n_bins(); ++bin) {
    const std::string emb = absl::StrCat("emb.", bin, ".proj");
    const std::string head = absl::StrCat("head.", bin, ".proj");
    const bool at_input = tensors.contains(emb);
    const bool at_output =
        tensors.contains(head) || (at_input && IsTiedProjection(config, bin));
    if (at_input != at_output) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": tensor ", at_input ? head : emb,
                       " is missing unlike ", at_input ? emb : head));
    }
  }
  return absl::OkStatus();
}

// Optional tensors of layers stand in every layer or in none.
absl::Status CheckSameInAllLayers(
    const ModelConfig& config, const std::map<std::string, TensorInfo>& tensors,
    const std::string& path) {
  for (const char* name : {"bq", "bk", "bv", "br", "bo"}) {
    const bool first = tensors.contains(absl::StrCat("layer.0.", name));
    for (int64_t l = 1; l < config.n_layer; ++l) {
      const std::string here = absl::StrCat("layer.", l, ".", name);
      if (tensors.contains(here) != first) {
        return absl::InvalidArgumentError(
            absl::StrCat(path, ": tensor ", here, first ? " is missing" : "",
                         " unlike in layer 0"));
      }
    }
  }
  return absl::OkStatus();
}

// The two position tables of every layer reach equally far.
absl::Status CheckTableRows(const ModelConfig& config,
                            const std::map<std::string, TensorInfo>& tensors,
                            const std::string& path) {
  if (config.pos != PositionKind::kTable) return absl::OkStatus();
  const int64_t rows = tensors.at("layer.0.rel_t").shape[0];
  for (int64_t l = 0; l < config.n_layer; ++l) {
    for (const char* table : {"rel_t", "rel_s"}) {
      const std::string name = absl::StrCat("layer.", l, ".", table);
      const int64_t own = tensors.at(name).shape[0];
      if (own != rows) {
        return absl::InvalidArgumentError(
            absl::StrCat(path, ": tensor ", name, " has ", own,
                         " rows, layer.0.rel_t has ", rows));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckOne(const std::string& name, const TensorInfo& info,
                      const CanonicalTensor& expected,
                      const std::string& path) {
  const bool is_float = info.dtype == DType::kF64 ||
                        info.dtype == DType::kF32 ||
                        info.dtype == DType::kF16 || info.dtype == DType::kBF16;
  if (!is_float) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": tensor ", name, " has dtype ",
                     DTypeName(info.dtype), ", must be a float"));
  }
  if (!ShapeFits(info.shape, expected.shape)) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": tensor ", name, " has shape ", ShapeText(info.shape),
        ", must have ", ShapeText(expected.shape)));
  }
  return absl::OkStatus();
}

}  // namespace

std::map<std::string, CanonicalTensor> CanonicalTensors(
    const ModelConfig& config) {
  TensorMap out;
  for (int64_t bin = 0; bin < config.n_bins(); ++bin) AddBin(config, bin, out);
  if (config.beat_positions.has_value()) {
    const auto table = [&](int64_t rows) -> CanonicalTensor {
      return {{rows, config.d_model}, Presence::kRequired, ""};
    };
    out["emb.beat"] = table(config.beat_positions->bar_ticks);
    out["emb.bar"] = table(config.beat_positions->bars);
  }
  for (int64_t l = 0; l < config.n_layer; ++l) {
    AddLayer(config, absl::StrCat("layer.", l, "."), out);
  }
  if (config.final_norm) {
    out["final.g"] = {{config.d_model}, Presence::kRequired, ""};
    out["final.b"] = {{config.d_model}, Presence::kRequired, ""};
  }
  if (config.n_bins() > 1) {
    const int64_t clusters = config.n_bins() - 1;
    out["head.cluster.w"] = {
        {clusters, config.bin_width(0)}, Presence::kRequired, ""};
    out["head.cluster.b"] = {{clusters}, Presence::kRequired, ""};
  }
  if (config.pos == PositionKind::kSinConcat) {
    out["pos.inv_freq"] = {{config.d_model / 2}, Presence::kOptional, ""};
  }
  return out;
}

int64_t RequiredParameters(const ModelConfig& config) {
  int64_t parameters = 0;
  for (const auto& [name, tensor] : CanonicalTensors(config)) {
    if (tensor.presence != Presence::kRequired) continue;
    int64_t numel = 1;
    for (const int64_t size : tensor.shape) {
      numel *= size == -1 ? config.serving_window() : size;
    }
    parameters += numel;
  }
  return parameters;
}

absl::Status CheckCanonicalTensors(
    const ModelConfig& config, const std::map<std::string, TensorInfo>& tensors,
    const std::string& path) {
  // More layers than the file can hold are an error before the list is made.
  if (config.n_layer > static_cast<int64_t>(tensors.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": holds ", tensors.size(),
                     " tensors, too few for n_layer ", config.n_layer));
  }
  const TensorMap expected = CanonicalTensors(config);
  for (const auto& [name, info] : tensors) {
    const auto it = expected.find(name);
    if (it == expected.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": tensor ", name, " is not part of the model of config.json"));
    }
    TXL_RETURN_IF_ERROR(CheckOne(name, info, it->second, path));
  }
  for (const auto& [name, tensor] : expected) {
    if (tensor.presence == Presence::kRequired && !tensors.contains(name)) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": tensor ", name, " is missing"));
    }
  }
  TXL_RETURN_IF_ERROR(CheckProjectionPairs(config, tensors, path));
  TXL_RETURN_IF_ERROR(CheckTableRows(config, tensors, path));
  return CheckSameInAllLayers(config, tensors, path);
}

}  // namespace txl
