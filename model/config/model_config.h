#pragma once

// The hyper-parameters and semantic choices of one Transformer-XL: everything
// that the weights do not show. Plain data; no tensor.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/base/beat_positions.h"

namespace txl {

enum class NormPlacement { kPost, kPre };
enum class Activation { kNone, kRelu, kGeluTanh };

// How the distance between a query and a key enters the attention score.
enum class PositionKind {
  kSinConcat,          // R = [sin(k f) ; cos(k f)], f_i = base^(-2i/d)
  kSinInterleavedRaw,  // R[c] = sin (even c) or cos (odd c) of k/base^(2c/d)
  kTable,              // learned rows rel_t, rel_s indexed by distance
};

enum class MemoryInit {
  kEmpty,  // no rows: the first token sees only itself
  kZeros,  // mem_len zero rows at positions -mem_len..-1, attended to
};

// Fields are named as in config.json. Valid once returned by ParseModelConfig.
struct ModelConfig {
  int64_t vocab_size = 0;  // V >= 1
  int64_t n_layer = 0;     // L >= 1
  int64_t n_head = 0;      // H >= 1
  int64_t d_head = 0;      // D >= 1; H*D need not equal d_model
  int64_t d_model = 0;     // d >= 1
  int64_t d_embed = 0;     // e >= 1, embedding width of bin 0
  int64_t d_inner = 0;     // F >= 1

  NormPlacement norm = NormPlacement::kPost;
  bool final_norm = false;
  double ln_eps = 1e-5;
  Activation act = Activation::kRelu;
  Activation ff_out_act = Activation::kNone;  // on the second layer's output

  PositionKind pos = PositionKind::kSinConcat;
  double pos_base = 10000;
  // Distances above it are encoded as clamp_len; absent: off.
  std::optional<int64_t> clamp_len;

  // Keys that a query sees, itself included; absent: all memory plus the
  // causal part of the call.
  std::optional<int64_t> window;
  int64_t mem_len = 0;  // M >= 0 rows kept per layer
  MemoryInit mem_init = MemoryInit::kEmpty;
  bool scale_embedding = true;  // emb_scale: "sqrt_d" (true) or "1"
  // Absent: ids are all that the model is fed.
  std::optional<BeatPositions> beat_positions;

  // Adaptive embedding and softmax (arXiv:1609.04309). Ends of the bins but
  // the last, strictly increasing, in (0, V); empty: one bin.
  std::vector<int64_t> cutoffs;
  int64_t div_val = 1;  // bin b is d_embed / div_val^b wide
  // emb_proj_bin0: "present", "absent", or null (no projection at all).
  // Absent config field: decided by the tensors.
  std::optional<bool> emb_proj_bin0;
  bool tie_weight = false;      // head.{b}.w = emb.{b}.w
  std::vector<bool> tie_projs;  // per bin: head.{b}.proj = emb.{b}.proj
  bool head_bias = true;

  int64_t n_bins() const { return static_cast<int64_t>(cutoffs.size()) + 1; }
  // First token id of bin b, 0 <= b <= n_bins(); bin_begin(n_bins()) == V.
  int64_t bin_begin(int64_t bin) const;
  int64_t bin_size(int64_t bin) const;
  int64_t bin_width(int64_t bin) const;  // e_b >= 1

  // Rows of the tables of beat and bar, [beat_rows, d] in all; 0: none.
  int64_t beat_rows() const {
    return beat_positions.has_value()
               ? beat_positions->bar_ticks + beat_positions->bars
               : 0;
  }

  // Keys that a query sees when served, itself included: min(window, M + 1).
  // An unlimited window is served with M + 1, which is what the model's own
  // token-by-token loop does.
  int64_t serving_window() const;
  // Distances that have a positional key of their own when served,
  // 0..result-1: all of the window, or those up to the clamp (tables are not
  // clamped).
  int64_t position_distances() const;
};

// Parses and validates the text of a config.json. `origin` (a file name) opens
// every error message, which then names the field and what is wrong with it.
// Keys that are not fields are ignored, unless they look misspelt.
// Errors: InvalidArgument (no JSON, missing field, wrong type, out of range,
// fields that contradict each other, sizes whose product overflows).
absl::StatusOr<ModelConfig> ParseModelConfig(absl::string_view json,
                                             absl::string_view origin);

// The config.json text of `config`; ParseModelConfig gives `config` back.
std::string ModelConfigToJson(const ModelConfig& config);

// The keys of a config.json and of what replaces its fields.

// Names of the fields that ModelConfigToJson writes.
const std::vector<std::string>& ModelConfigFields();

// Refuses a key that looks like a field misspelt, or that is training code's
// name for one, and a field of another type than its own. Other keys are
// notes of their author. Errors as of ParseModelConfig.
absl::Status CheckModelConfigKeys(const nlohmann::json& object,
                                  absl::string_view origin);

}  // namespace txl
