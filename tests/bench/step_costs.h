#pragma once

// What a step costs at least, phase by phase, and what a machine of given rates
// allows for it: the rooflines that benchmarks are held against. Pure
// functions.
//
// Bytes are what the step has to read for its number formats, each weight once
// and each session's memory once, never counted traffic. Left out because a
// cache holds them or because they are far below a percent: activations,
// scores, logits, biases, norms, scales, embedding rows, the newest row.

#include <cstdint>

#include "model/config/model_config.h"
#include "model/cpu/attention_form.h"
#include "model/cpu/native_weights.h"

namespace txl {

struct PhaseCost {
  double bytes = 0;
  double flops = 0;
};

struct StepCosts {
  PhaseCost weights;    // matrices of the layers
  PhaseCost softmax;    // head and the tails that are looked at
  PhaseCost attention;  // memories of the sessions
  PhaseCost distances;  // positional keys: one table for all sessions

  double bytes() const;
  double flops() const;
};

struct StepWork {
  NativeFormats formats;  // formats.form is not looked at
  // Projected: 2 H D numbers of the derived format a row. Absorbed: d numbers
  // of the memory's, H times the arithmetic.
  AttentionForm form = AttentionForm::kProjected;
  int64_t sessions = 1;
  // How often a session's token needs a tail of the adaptive softmax, in
  // [0, 1], all tails alike. A step reads a tail when any session needs it.
  double tail_share = 0;
};

// One token of every session, memories full.
StepCosts DecodeCosts(const ModelConfig& config, const StepWork& work);

// A segment of every session, each row scored: `tail_share` of targets. A
// session's memory is read once for all of its rows; rows of the segment itself
// are as new as a decoded token's.
StepCosts ScoreCosts(const ModelConfig& config, const StepWork& work,
                     int64_t segment_rows);

// FLOPs of feeding positions [begin, begin + rows) of one session without
// outputs: keys are projected whatever the form, and every query meets the keys
// that it sees.
double PromptFlops(const ModelConfig& config, int64_t begin, int64_t rows);

struct MachineRates {
  double bytes_per_second = 0;
  double flops_per_second = 0;
};

// Phases one after the other, each at the pace of what it needs more of.
double PhasesAddedSeconds(const StepCosts& costs, const MachineRates& rates);

}  // namespace txl
