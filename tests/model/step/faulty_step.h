#pragma once

// A step with one mistake in it, around one without.

#include <memory>
#include <ostream>
#include <vector>

#include "model/step/sampling_step.h"

namespace txl {

enum class StepFault {
  kNone,
  kNanRow,              // one row of a step is no number
  kLogprobOfNothing,    // a log-probability is NaN, and the row says it is OK
  kLogprobOfAnother,    // a drawn token has the second alternative's
  kSwappedRows,         // two rows of a step change places
  kNeighbourScored,     // what is scored is the next id
  kUnnormalised,        // log-probabilities are half a nat too large
  kAlternativeMissing,  // the best alternative is not reported
  kSecondBest,          // draws take the second alternative
  kAlwaysRandom,        // greedy draws are drawn
  kOtherSeed,           // draws of another seed
  kForgottenToken,      // the token that was drawn is not what is fed
  kLatePosition,        // rows behind the first ones stand one place too far
  kStaleSlot,           // Clear does nothing
  kLostCopy,            // Copy does nothing
  kRowNotKept,          // the newest row of a state is the one before it
  kShortExport,         // a state lacks its oldest row
  kShiftedImport,       // rows of a state come in one place too late
  kLayersMixedUp,       // a state's first two layers change places
  kFlippedBit,          // one bit of a state is another one when it comes in
};
inline constexpr StepFault kLastStepFault = StepFault::kFlippedBit;

// Every fault but kNone.
std::vector<StepFault> AllStepFaults();
const char* NameOf(StepFault fault);
inline void PrintTo(StepFault fault, std::ostream* out) {
  *out << NameOf(fault);
}

std::unique_ptr<SamplingStep> MakeFaultyStep(std::unique_ptr<SamplingStep> step,
                                             StepFault fault);

}  // namespace txl
