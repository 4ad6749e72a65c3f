#pragma once

// Which form of attention a model is served with (docs/design/step.md),
// and when which is faster.

#include <array>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "model/base/number_format.h"

namespace txl {

// kProjected: keys and values of every stored row are kept beside it.
// kAbsorbed: their projections move into query and output, and attention runs
// on the stored rows themselves: fewer bytes, n_head times the arithmetic.
enum class AttentionForm { kProjected, kAbsorbed };

struct NamedForm {
  const char* name;
  AttentionForm form;
};

inline constexpr std::array<NamedForm, 2> kForms = {
    {{"projected", AttentionForm::kProjected},
     {"absorbed", AttentionForm::kAbsorbed}}};

const char* FormName(AttentionForm form);
// Nothing: no such form.
std::optional<AttentionForm> FindForm(absl::string_view name);

// Attention for one new token with a full memory.
struct AttentionWork {
  int64_t layers = 0;
  int64_t mem_len = 0;
  int64_t heads = 0;
  int64_t head_width = 0;
  int64_t model_width = 0;
  NumberFormat memory = NumberFormat::kF32;   // of stored rows
  NumberFormat derived = NumberFormat::kF32;  // of keys and values
};

// What reading one byte of the memory costs, in floating-point operations that
// the absorbed form does in the same time. With these values both forms' steps
// cost the same where txl-bench-engine measures equal times on two AVX-512
// cores: with 8 heads in float32 where slots lie in main memory (about 170
// GFLOP/s beside 43 GB/s), with 3 where caches hold them. If both cost the
// same, the projected form is taken: its prompts are twice as fast.
inline constexpr double kFlopPerByte = 4.0;
inline constexpr double kFlopPerCachedByte = 1.3;
// How much faster whole numbers are where stored and derived rows are int8
// (txl-bench-engine on AVX-512 VNNI; not measured on AMX).
inline constexpr double kIntegerGain = 1.9;
// Keys and values of a slot, over all layers, that count as cached.
inline constexpr double kCachedBytes = 8 << 20;

// Cost of a layer in a form, in bytes read: the larger of its bytes and of its
// operations turned into bytes.
//   projected: 2 M H D s_derived bytes, 4 M H D operations
//   absorbed:  M d s_memory bytes,      4 M H d operations
// In words: of long memories, absorbed where H < s kFlopPerByte / 2, that is 8
// heads in float32 and 4 in half precision and int8, if both keep their numbers
// equally wide.
double AttentionCost(const AttentionWork& work, AttentionForm form);

// The cheaper form; kProjected of equals.
AttentionForm ChooseForm(const AttentionWork& work);

}  // namespace txl
