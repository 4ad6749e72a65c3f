#pragma once

// What a step is fed and what it is asked, where the host did not know it yet
// when it queued the step: a slot's token may be one that an earlier step
// samples.

#include <cstdint>

#include "model/cuda/device/runtime.h"
#include "model/cuda/kernels/rows.h"
#include "model/cuda/kernels/sampling_slots.h"

namespace txl::cuda {

// Arrays on the device. A row is unknown when it is fed, or stands behind a row
// of its slot in this step that is fed, a token that was never sampled.
struct TokenArgs {
  StepRows rows;
  // [count]: ids; -1: what the row's slot sampled last. Of rows with slot -1
  // an id.
  const int32_t* given = nullptr;
  // [count]: 1 where the slot's first row of this step is given as -1, else 0.
  const int32_t* follows_sampled = nullptr;
  SamplingSlots slots;
  int32_t* tokens = nullptr;   // [count]: ids; 0 for an unknown one
  int32_t* unknown = nullptr;  // [count]: 1 or 0
};

void LaunchResolveTokens(Stream& stream, const TokenArgs& args);

// Rows that are picked out of a step's.
struct PickArgs {
  int count = 0;
  const int32_t* picked = nullptr;  // [count]: indices of rows; -1: none
  StepRows rows;
  const int32_t* unknown = nullptr;  // of LaunchResolveTokens
  int32_t* index = nullptr;          // [count]: picked, 0 for none
  int32_t* slot = nullptr;           // [count]: -1 for none and unknown ones
  int64_t* position = nullptr;       // [count]: 0 for none
};

void LaunchPickRows(Stream& stream, const PickArgs& args);

}  // namespace txl::cuda
