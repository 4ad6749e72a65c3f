#include "model/config/model_config.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "model/config/json_fields.h"

namespace txl {
namespace {

using nlohmann::json;

// Bounds of single sizes. With them the bytes of any matrix, of all layers and
// of a session's memory fit int64; what a file really holds is compared with
// its shapes before anything is allocated.
constexpr int64_t kMaxWidth = int64_t{1} << 20;
constexpr int64_t kMaxVocabulary = int64_t{1} << 30;
constexpr int64_t kMaxLayers = 4096;
constexpr int64_t kMaxMemory = int64_t{1} << 24;
constexpr int64_t kMaxBeatRows = int64_t{1} << 14;

const std::vector<std::string>& BeatPositionFields() {
  static const std::vector<std::string> fields = {
      "separator", "duration0", "mask", "restart", "bar_ticks", "bars"};
  return fields;
}

void ReadSizes(JsonFields& in, ModelConfig& config) {
  config.vocab_size = in.RequiredInt("vocab_size", 1, kMaxVocabulary);
  config.n_layer = in.RequiredInt("n_layer", 1, kMaxLayers);
  config.n_head = in.RequiredInt("n_head", 1, kMaxWidth);
  config.d_head = in.RequiredInt("d_head", 1, kMaxWidth);
  config.d_model = in.RequiredInt("d_model", 1, kMaxWidth);
  config.d_embed = in.Int("d_embed", config.d_model, 1, kMaxWidth);
  config.d_inner = in.RequiredInt("d_inner", 1, kMaxWidth);
  config.mem_len = in.RequiredInt("mem_len", 0, kMaxMemory);
  if (config.n_head * config.d_head > kMaxWidth) {
    in.Fail("n_head", absl::StrCat("times d_head is above ", kMaxWidth));
  }
}

void ReadArithmetic(JsonFields& in, ModelConfig& config) {
  config.norm = in.Enum<NormPlacement>(
      "norm", config.norm,
      {{"post", NormPlacement::kPost}, {"pre", NormPlacement::kPre}});
  config.final_norm = in.Bool("final_norm", config.final_norm);
  config.ln_eps = in.Number("ln_eps", config.ln_eps);
  if (config.ln_eps <= 0) in.Fail("ln_eps", "must be above 0");
  config.act = in.Enum<Activation>(
      "act", config.act,
      {{"relu", Activation::kRelu}, {"gelu_tanh", Activation::kGeluTanh}});
  config.ff_out_act = in.Enum<Activation>(
      "ff_out_act", config.ff_out_act,
      {{"none", Activation::kNone}, {"relu", Activation::kRelu}});
}

void ReadPositions(JsonFields& in, ModelConfig& config) {
  config.pos = in.Enum<PositionKind>(
      "pos", config.pos,
      {{"sin_concat", PositionKind::kSinConcat},
       {"sin_interleaved_raw", PositionKind::kSinInterleavedRaw},
       {"table", PositionKind::kTable}});
  if (config.pos == PositionKind::kSinConcat && config.d_model % 2 != 0) {
    in.Fail("d_model", "must be even with pos sin_concat");
  }
  config.pos_base = in.Number("pos_base", config.pos_base);
  if (config.pos_base <= 0) in.Fail("pos_base", "must be above 0");
  in.Enum<int>("pos_dtype", 0, {{"f32", 0}});
  config.clamp_len = in.OptionalInt("clamp_len", -1, kMaxMemory);
  if (config.clamp_len.has_value() && *config.clamp_len <= 0) {
    config.clamp_len.reset();
  }
}

void ReadMemory(JsonFields& in, ModelConfig& config) {
  config.window = in.OptionalInt("window", -1, 2 * kMaxMemory);
  if (config.window == 0) in.Fail("window", "is 0, a query sees itself");
  if (config.window == -1) config.window.reset();
  config.mem_init = in.Enum<MemoryInit>(
      "mem_init", config.mem_init,
      {{"empty", MemoryInit::kEmpty}, {"zeros", MemoryInit::kZeros}});
  in.Enum<int>("mem_policy", 0, {{"rolling", 0}});
  in.Int("ext_len", 0, 0, 0);
}

// The ids are the vocabulary's, and all sums of ticks fit 32 bits.
void ReadBeatPositions(JsonFields& in, ModelConfig& config) {
  std::optional<JsonFields> beats = in.Object("beat_positions");
  if (!beats.has_value()) return;
  const auto id = [&](const char* field) {
    return static_cast<int32_t>(
        beats->RequiredInt(field, 0, config.vocab_size - 1));
  };
  BeatPositions& out = config.beat_positions.emplace();
  out.separator = id("separator");
  out.duration0 = id("duration0");
  out.mask = id("mask");
  out.restart = id("restart");
  const auto rows = [&](const char* field) {
    return static_cast<int32_t>(beats->RequiredInt(field, 1, kMaxBeatRows));
  };
  out.bar_ticks = rows("bar_ticks");
  out.bars = rows("bars");
  beats->RefuseUnknown(BeatPositionFields());
  in.FailAs(*beats);
}

// emb_scale is "sqrt_d", "1" or 1.
bool ReadEmbeddingScale(JsonFields& in, const json& object) {
  const auto it = object.find("emb_scale");
  if (it != object.end() && it->is_number()) {
    if (it->get<double>() != 1.0) in.Fail("emb_scale", "must be sqrt_d or 1");
    return false;
  }
  return in.Enum<bool>("emb_scale", true, {{"sqrt_d", true}, {"1", false}});
}

void ReadAdaptive(JsonFields& in, const json& object, ModelConfig& config) {
  config.scale_embedding = ReadEmbeddingScale(in, object);
  config.cutoffs = in.IntList("cutoffs", 1, kMaxVocabulary);
  int64_t previous = 0;
  for (const int64_t cutoff : config.cutoffs) {
    if (cutoff <= previous || cutoff >= config.vocab_size) {
      in.Fail("cutoffs", "must increase strictly between 0 and vocab_size");
      return;
    }
    previous = cutoff;
  }
  config.div_val = in.Int("div_val", config.div_val, 1, kMaxWidth);
  if (config.bin_width(config.n_bins() - 1) < 1) {
    in.Fail("div_val", "leaves the last bin no width");
  }
  if (in.Has("emb_proj_bin0")) {
    config.emb_proj_bin0 = in.Enum<bool>(
        "emb_proj_bin0", false, {{"present", true}, {"absent", false}});
  }
  config.tie_weight = in.Bool("tie_weight", config.tie_weight);
  config.tie_projs = in.BoolList("tie_projs");
  if (!config.tie_projs.empty() &&
      static_cast<int64_t>(config.tie_projs.size()) != config.n_bins()) {
    in.Fail("tie_projs",
            absl::StrCat("has ", config.tie_projs.size(), " entries for ",
                         config.n_bins(), " bins"));
  }
  config.head_bias = in.Bool("head_bias", config.head_bias);
}

json Named(bool condition, const char* yes, const char* no) {
  return condition ? yes : no;
}

json PositionName(PositionKind kind) {
  switch (kind) {
    case PositionKind::kSinConcat:
      return "sin_concat";
    case PositionKind::kSinInterleavedRaw:
      return "sin_interleaved_raw";
    case PositionKind::kTable:
      return "table";
  }
  return nullptr;
}

}  // namespace

int64_t ModelConfig::bin_begin(int64_t bin) const {
  if (bin == 0) return 0;
  return bin < n_bins() ? cutoffs[bin - 1] : vocab_size;
}

int64_t ModelConfig::bin_size(int64_t bin) const {
  return bin_begin(bin + 1) - bin_begin(bin);
}

int64_t ModelConfig::bin_width(int64_t bin) const {
  int64_t width = d_embed;
  for (int64_t i = 0; i < bin && width > 0; ++i) width /= div_val;
  return width;
}

int64_t ModelConfig::serving_window() const {
  return std::min(window.value_or(mem_len + 1), mem_len + 1);
}

int64_t ModelConfig::position_distances() const {
  const int64_t seen = serving_window();
  if (pos == PositionKind::kTable || !clamp_len.has_value()) return seen;
  return std::min(seen, *clamp_len + 1);
}

absl::StatusOr<ModelConfig> ParseModelConfig(absl::string_view text,
                                             absl::string_view origin) {
  TXL_ASSIGN_OR_RETURN(const json object, ParseJsonObject(text, origin));
  TXL_RETURN_IF_ERROR(CheckModelConfigKeys(object, origin));
  JsonFields in(object, origin);
  ModelConfig config;
  ReadSizes(in, config);
  ReadArithmetic(in, config);
  ReadPositions(in, config);
  ReadMemory(in, config);
  ReadBeatPositions(in, config);
  ReadAdaptive(in, object, config);
  TXL_RETURN_IF_ERROR(in.status());
  return config;
}

std::string ModelConfigToJson(const ModelConfig& config) {
  json out;
  out["vocab_size"] = config.vocab_size;
  out["n_layer"] = config.n_layer;
  out["n_head"] = config.n_head;
  out["d_head"] = config.d_head;
  out["d_model"] = config.d_model;
  out["d_embed"] = config.d_embed;
  out["d_inner"] = config.d_inner;
  out["norm"] = Named(config.norm == NormPlacement::kPre, "pre", "post");
  out["final_norm"] = config.final_norm;
  out["ln_eps"] = config.ln_eps;
  out["act"] = Named(config.act == Activation::kGeluTanh, "gelu_tanh", "relu");
  out["ff_out_act"] =
      Named(config.ff_out_act == Activation::kRelu, "relu", "none");
  out["pos"] = PositionName(config.pos);
  out["pos_base"] = config.pos_base;
  out["pos_dtype"] = "f32";
  out["clamp_len"] = config.clamp_len.value_or(-1);
  out["window"] = config.window.has_value() ? json(*config.window) : json();
  out["mem_len"] = config.mem_len;
  out["mem_init"] =
      Named(config.mem_init == MemoryInit::kZeros, "zeros", "empty");
  out["mem_policy"] = "rolling";
  out["emb_scale"] = Named(config.scale_embedding, "sqrt_d", "1");
  out["cutoffs"] = config.cutoffs;
  out["div_val"] = config.div_val;
  if (config.emb_proj_bin0.has_value()) {
    out["emb_proj_bin0"] = Named(*config.emb_proj_bin0, "present", "absent");
  }
  out["tie_weight"] = config.tie_weight;
  out["tie_projs"] = config.tie_projs;
  out["head_bias"] = config.head_bias;
  if (config.beat_positions.has_value()) {
    const BeatPositions& beats = *config.beat_positions;
    out["beat_positions"] = {
        {"separator", beats.separator}, {"duration0", beats.duration0},
        {"mask", beats.mask},           {"restart", beats.restart},
        {"bar_ticks", beats.bar_ticks}, {"bars", beats.bars}};
  }
  return out.dump(2) + "\n";
}

namespace {

// Names that people know from training code, whose fields are others.
constexpr std::pair<const char*, const char*> kNamesOfTrainingCode[] = {
    {"same_length", "window"},
    {"n_token", "vocab_size"},
    {"pre_lnorm", "norm"}};

// By the type that a field must have; null is absent.
void CheckTypes(JsonFields& in) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  for (const char* field :
       {"vocab_size", "n_layer", "n_head", "d_head", "d_model", "d_embed",
        "d_inner", "clamp_len", "window", "mem_len", "div_val"}) {
    in.OptionalInt(field, kLeast, kMost);
  }
  for (const char* field : {"ln_eps", "pos_base"}) in.OptionalNumber(field);
  for (const char* field : {"norm", "act", "ff_out_act", "pos", "pos_dtype",
                            "mem_init", "mem_policy", "emb_proj_bin0"}) {
    in.OptionalString(field);
  }
  for (const char* field : {"final_norm", "tie_weight", "head_bias"}) {
    in.Bool(field, false);
  }
  in.IntList("cutoffs", kLeast, kMost);
  in.BoolList("tie_projs");
  in.Object("beat_positions");
}

}  // namespace

const std::vector<std::string>& ModelConfigFields() {
  static const std::vector<std::string> fields = {
      "vocab_size", "n_layer",   "n_head",    "d_head",
      "d_model",    "d_embed",   "d_inner",   "norm",
      "final_norm", "ln_eps",    "act",       "ff_out_act",
      "pos",        "pos_base",  "pos_dtype", "clamp_len",
      "window",     "mem_len",   "mem_init",  "mem_policy",
      "emb_scale",  "cutoffs",   "div_val",   "emb_proj_bin0",
      "tie_weight", "tie_projs", "head_bias", "beat_positions"};
  return fields;
}

absl::Status CheckModelConfigKeys(const nlohmann::json& object,
                                  absl::string_view origin) {
  JsonFields in(object, origin);
  for (const auto& [theirs, ours] : kNamesOfTrainingCode) {
    if (in.Has(theirs)) {
      in.Fail(theirs, absl::StrCat("is unknown; ", ours, " says it"));
    }
  }
  in.RefuseMisspelt(ModelConfigFields());
  CheckTypes(in);
  return in.status();
}

}  // namespace txl
