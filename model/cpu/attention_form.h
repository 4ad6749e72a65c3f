#pragma once

// Which form of attention a model is served with (docs/ARCHITECTURE.md, "One
// step"), and when which is faster.

#include <cstdint>

#include "model/cpu/panel_product.h"

namespace txl {

// kProjected: keys and values of every stored row are kept beside it.
// kAbsorbed: their projections move into query and output, and attention runs
// on the stored rows themselves: fewer bytes, n_head times the arithmetic.
enum class AttentionForm { kProjected, kAbsorbed };

// One layer's attention for one new token with a full memory.
struct AttentionShape {
  int64_t mem_len = 0;
  int64_t heads = 0;
  int64_t head_width = 0;
  int64_t model_width = 0;
  NumberFormat memory = NumberFormat::kF32;   // of stored rows
  NumberFormat derived = NumberFormat::kF32;  // of keys and values
};

// What reading one byte of memory costs, in floating-point operations that the
// attention kernels do in the same time: 440 GFLOP/s of multiply-adds, of which
// they reach 70 %, beside 45 GB/s.
inline constexpr double kFlopPerByte = 7.0;

// Cost of a form, in bytes read: the larger of its bytes and of its operations
// turned into bytes.
//   projected: 2 M H D s_derived bytes, 4 M H D operations
//   absorbed:  M d s_memory bytes,      4 M H d operations
// In words: absorbed where H < s kFlopPerByte / 2, that is 14 heads in float32
// and 7 in half precision, as long as both keep their numbers equally wide.
double AttentionCost(const AttentionShape& shape, AttentionForm form);

// The cheaper form; kProjected of equals.
AttentionForm ChooseForm(const AttentionShape& shape);

}  // namespace txl
