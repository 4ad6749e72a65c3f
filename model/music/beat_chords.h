#pragma once

// The chord of every beat, as chorder 0.1.4 finds it (dechorder.py).

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "model/music/instruments.h"

namespace txl {

// Root, quality and bass of each beat ("C_M_C", "A#_/o7_E"); "N_N_N" where no
// chord is heard. Errors: INVALID_ARGUMENT: far more notes sound at once than
// in music, which would take long.
absl::StatusOr<std::vector<std::string>> BeatChords(const Instruments& music);

}  // namespace txl
