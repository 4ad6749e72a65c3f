#pragma once

// The configuration that lies in a checkpoint: attributes of a pickled module,
// a dictionary of constructor arguments, the arguments of the command line.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/string_view.h"
#include "model/convert/family/plan_builder.h"

namespace txl {

// One object with kimiyoung's names of the settings (n_token, pre_lnorm,
// same_length, ...), from what the checkpoint has of: "args" (also not_tied),
// "model_config", "model_setting", and the attributes of a module pickled whole
// at `place`, the later the stronger. One of another type is an error in the
// table.
nlohmann::json OwnSettings(const NativeCheckpoint& checkpoint,
                           const std::string& place, TensorTable& table);

// Copies the settings that `from` has (null: none) to `to`. `place` as of
// TypedMember.
void OverlaySettings(const nlohmann::json* from, absl::string_view place,
                     TensorTable& table, nlohmann::json& to);

// A note for readers: nothing was found, or values of training were.
void NoteSettings(const nlohmann::json& settings, PlanBuilder& builder);

struct WindowRule {
  bool same_length = false;    // if the checkpoint does not say
  int64_t beyond_mem_len = 0;  // keys that same_length shows besides mem_len
};

// Gives `settings` and then the family's defaults (post LayerNorm, 1e-5, ReLU,
// sqrt_d, ...) to the draft; the window follows from same_length and the
// mem_len that holds, unless a spec has one. Fails on what is not supported:
// attn_type above 1, ext_len other than 0 unless the spec says 0. `mem_len` is
// the family's default.
void ApplySettings(const nlohmann::json& settings, const nlohmann::json& spec,
                   const WindowRule& rule, int64_t mem_len,
                   PlanBuilder& builder);

// Settings of a checkpoint's own configuration have the types that its code
// gives them. One of another type is an error that names it: a default in its
// place would be another model.

enum class SettingType {
  kFlag,    // true or false; also 1 or 0, which Python takes as such
  kInt,     // also a float without a fraction
  kNumber,  // finite
  kFlags,   // a list of flags
  kInts,    // a list of integers
};

// Member `key` of `object` as its type; discarded when it is absent or null
// (as of Member) and, with an error in the table that opens with `place` and
// the key ("field args.same_length"), when it has another.
nlohmann::json TypedMember(const nlohmann::json* object, absl::string_view key,
                           SettingType type, absl::string_view place,
                           TensorTable& table);

}  // namespace txl
